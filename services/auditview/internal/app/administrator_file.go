package app

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"
)

var (
	namePattern       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@ -]{0,127}$`)
	permissionPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}:[a-z][a-z0-9_-]{0,63}$`)
)

// ErrAdministratorsFile is a file that is not a list of administrators. It quotes nothing:
// a file in the wrong form may have a token in any place.
var ErrAdministratorsFile = errors.New("the file is not of the form admins: [{name, token, permissions}], or has unknown or repeated fields")

type administratorEntry struct {
	Name        string   `json:"name"`
	Token       string   `json:"token"`
	Permissions []string `json:"permissions"`
}

// parseAdministrators reads a file strictly and checks all of it.
func parseAdministrators(file []byte) (entries []administratorEntry, warnings []string, err error) {
	body, err := yaml.YAMLToJSONStrict(file)
	if err != nil {
		return nil, nil, ErrAdministratorsFile
	}
	var parsed struct {
		Admins *[]administratorEntry `json:"admins"`
	}
	if err := json.Unmarshal(body, &parsed, json.RejectUnknownMembers(true)); err != nil || parsed.Admins == nil {
		return nil, nil, ErrAdministratorsFile
	}
	var problems []error
	names, tokens := make(map[string]bool), make(map[string]bool)
	for i := range *parsed.Admins {
		e := &(*parsed.Admins)[i]
		switch {
		case !namePattern.MatchString(e.Name):
			problems = append(problems, fmt.Errorf("administrator %d: the name has 1 to 128 letters, digits, spaces or _.@- and begins with a letter or digit", i+1))
			continue
		case names[e.Name]:
			problems = append(problems, fmt.Errorf("administrator %q occurs twice", e.Name))
		case e.Token != "" && tokens[e.Token]:
			problems = append(problems, fmt.Errorf("administrator %q has a token that another one in the file has", e.Name))
		}
		if _, ok := ParseToken(e.Token); e.Token != "" && !ok {
			problems = append(problems, fmt.Errorf("administrator %q: a token is %s and 43 base64url characters", e.Name, TokenPrefix))
		}
		names[e.Name], tokens[e.Token] = true, true
		slices.Sort(e.Permissions)
		e.Permissions = slices.Compact(e.Permissions)
		for _, p := range e.Permissions {
			switch {
			case !permissionPattern.MatchString(p):
				problems = append(problems, fmt.Errorf("administrator %q: a permission is word:word", e.Name))
			case p != PermissionRead && p != PermissionMetadata:
				warnings = append(warnings, fmt.Sprintf("administrator %q: the permission %s is not known and grants nothing", e.Name, p))
			}
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, nil, err
	}
	return *parsed.Admins, warnings, nil
}
