package config

import (
	"encoding"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"syscall"
	"time"
)

// maxSecretFile bounds what is read for one secret, in bytes: a path that names a
// device or a log by mistake must not fill the memory.
const maxSecretFile = 64 << 10

// walk calls visit for each field of t that has a variable, nested structs included.
func walk(t reflect.Type, prefix string, visit func(name string, field reflect.StructField)) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for field := range t.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("env"), ",")
		switch {
		case !field.IsExported():
		case key != "":
			visit(prefix+key, field)
		case field.Type.Kind() == reflect.Struct || field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() == reflect.Struct:
			walk(field.Type, prefix+field.Tag.Get("envPrefix"), visit)
		}
	}
}

// keepEmpty empties the string fields that say so and whose variable is set to nothing.
func keepEmpty[T any](cfg *T, prefix string, environ map[string]string) {
	walk(reflect.TypeFor[T](), prefix, func(name string, field reflect.StructField) {
		value, set := environ[name]
		if set && strings.TrimSpace(value) == "" && field.Tag.Get("envEmpty") == "keep" {
			reflect.ValueOf(cfg).Elem().FieldByName(field.Name).SetString("")
		}
	})
}

func secretNames(t reflect.Type, prefix string) []string {
	var names []string
	walk(t, prefix, func(name string, field reflect.StructField) {
		if field.Type == reflect.TypeFor[Secret]() {
			names = append(names, name)
		}
	})
	return names
}

// expected says what the variable's field takes.
func expected(t reflect.Type, prefix, variable string) string {
	text := "it cannot be converted"
	walk(t, prefix, func(name string, field reflect.StructField) {
		if name != variable {
			return
		}
		ft := field.Type
		switch kind := ft.Kind(); {
		case ft == reflect.TypeFor[time.Duration]():
			text = "it takes a duration such as 500ms, 10s or 5m"
		case reflect.PointerTo(ft).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		case kind == reflect.Bool:
			text = "it takes true or false"
		case kind >= reflect.Uint && kind <= reflect.Uint64:
			text = "it takes a whole number that is not negative"
		case kind >= reflect.Int && kind <= reflect.Int64:
			text = "it takes a whole number"
		case kind == reflect.Float32 || kind == reflect.Float64:
			text = "it takes a number"
		}
	})
	return text
}

// readSecretFiles sets NAME from the file that NAME_FILE names, in environ.
func readSecretFiles(names []string, environ map[string]string) []problem {
	var problems []problem
	for _, name := range names {
		path := environ[name+"_FILE"]
		if path == "" {
			continue
		}
		if environ[name] != "" {
			problems = append(problems, problem{name, name + " and " + name + "_FILE are both set; give one"})
			continue
		}
		content, reason := readSecretFile(path)
		if reason != "" {
			problems = append(problems, problem{name, name + "_FILE names a file that " + reason})
			continue
		}
		environ[name] = content
	}
	return problems
}

// readSecretFile returns the file's content, or why there is none without naming the path.
func readSecretFile(path string) (content, reason string) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return "", "is not a regular file"
	}
	if err == nil && info.Size() > maxSecretFile {
		return "", "is larger than 64 KiB"
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path) //nolint:gosec // the operator names the file: that is the variable's purpose
	}
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "does not exist"
	case errors.As(err, &errno):
		return "", "cannot be read: " + errno.Error()
	case err != nil:
		return "", "cannot be read"
	}
	content = strings.TrimSpace(string(raw))
	if content == "" {
		return "", "is empty"
	}
	return content, ""
}
