package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// InvalidError tells everything that is wrong with a configuration.
type InvalidError struct {
	// Problems has one sentence for each problem. Each names its variable; none holds a value.
	Problems []string
}

// Error lists the problems, one a line.
func (e *InvalidError) Error() string {
	return "the configuration is invalid:\n  " + strings.Join(e.Problems, "\n  ")
}

// Load fills a T, a struct with `env` tags, from environ; nil means the process's
// environment. Each variable's name is prefix followed by the field's tag.
//
// Every variable NAME of a [Secret] field may instead be given as NAME_FILE, the
// path of a file that holds the value; white space around it is dropped. To give
// both is a problem, and so is a file that cannot be read or holds nothing.
//
// A variable that is set to nothing has its default, but for a string field with the
// tag `envEmpty:"keep"`: there, nothing is a value.
//
// After reading, Load calls the method Validate() error of T or *T where there is
// one. Validate may return several errors with [errors.Join]; each must name the
// variable that it is about, without prefix or with, and must not hold values.
//
// The error is an [*InvalidError] that holds the problems of all variables. With an
// error, the returned T is its zero value. Load keeps no state and is safe for
// concurrent use.
func Load[T any](prefix string, environ map[string]string) (T, error) {
	var zero, cfg T
	if environ == nil {
		environ = env.ToMap(os.Environ())
	}
	environ = maps.Clone(environ)
	problems := readSecretFiles(secretNames(reflect.TypeFor[T](), prefix), environ)
	problems = append(problems, parse(&cfg, prefix, environ, problems)...)
	keepEmpty(&cfg, prefix, environ)
	problems = append(problems, validate(&cfg, problems)...)
	if len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = p.text
		}
		return zero, &InvalidError{Problems: lines}
	}
	return cfg, nil
}

// problem is one sentence about one variable; name is empty when it is about several.
type problem struct{ name, text string }

func named(problems []problem, name string) bool {
	return slices.ContainsFunc(problems, func(p problem) bool { return p.name == name })
}

// parse fills cfg and reports what is missing or malformed, but for the variables
// that earlier problems are about.
func parse[T any](cfg *T, prefix string, environ map[string]string, earlier []problem) []problem {
	err := env.ParseWithOptions(cfg, env.Options{Prefix: prefix, Environment: environ})
	if err == nil {
		return nil
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []problem{{text: "the configuration's declaration is faulty"}}
	}
	var problems []problem
	malformed := false
	for _, err := range all.Errors {
		var (
			missing env.VarIsNotSetError
			empty   env.EmptyVarError
			name    string
		)
		switch {
		case errors.As(err, &missing):
			name = missing.Key
		case errors.As(err, &empty):
			name = empty.Key
		case errors.As(err, new(env.ParseError)), errors.As(err, new(env.ParseValueError)):
			malformed = true
			continue
		default:
			problems = append(problems, problem{text: fmt.Sprintf("the configuration's declaration is faulty (%T)", err)})
			continue
		}
		if !named(earlier, name) {
			problems = append(problems, problem{name, name + " is required and not set"})
		}
	}
	if malformed {
		problems = append(problems, findMalformed[T](prefix, environ)...)
	}
	return problems
}

// findMalformed names the variables that cannot be converted. The library's errors
// name Go fields and quote values, so each variable is tried alone.
func findMalformed[T any](prefix string, environ map[string]string) []problem {
	var scratch T
	params, err := env.GetFieldParamsWithOptions(&scratch, env.Options{Prefix: prefix, Environment: environ})
	if err != nil {
		return []problem{{text: "the configuration's declaration is faulty"}}
	}
	var problems []problem
	for _, param := range params {
		value, set := environ[param.Key]
		if !set || named(problems, param.Key) {
			continue
		}
		var alone T
		err := env.ParseWithOptions(&alone, env.Options{Prefix: prefix, Environment: map[string]string{param.Key: value}})
		if errors.Is(err, env.ParseError{}) || errors.Is(err, env.ParseValueError{}) {
			problems = append(problems, problem{param.Key, param.Key + " is malformed: " + expected(reflect.TypeFor[T](), prefix, param.Key)})
		}
	}
	if len(problems) == 0 {
		return []problem{{text: "the configuration's declaration has a malformed default"}}
	}
	return problems
}

// validate calls T's own check. Lines about variables that are known to be wrong are
// left out: they follow from the zero value that stands in their place.
func validate[T any](cfg *T, earlier []problem) []problem {
	validator, ok := any(cfg).(interface{ Validate() error })
	if !ok {
		return nil
	}
	err := validator.Validate()
	if err == nil {
		return nil
	}
	var problems []problem
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		follows := slices.ContainsFunc(earlier, func(p problem) bool { return p.name != "" && strings.Contains(line, p.name) })
		if line != "" && !follows {
			problems = append(problems, problem{text: line})
		}
	}
	if len(problems) == 0 && len(earlier) == 0 {
		problems = append(problems, problem{text: "the configuration's own check failed"})
	}
	return problems
}
