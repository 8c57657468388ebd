// Package registryfile reads the operator's registry file: YAML or JSON with
// clients, routes, sessions, runs and controllers.
package registryfile

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"sigs.k8s.io/yaml"

	"verbatim.internal/services/ingest/internal/app"
)

type file struct {
	Clients  []client  `json:"clients"`
	Routes   []route   `json:"routes"`
	Sessions []session `json:"sessions"`
	Runs     []run     `json:"runs"`

	Controllers []controller `json:"controllers"`
}

// Parse reads a registry file strictly: undeclared, repeated and mistyped fields
// are refused. A client and a route are enabled unless the file says otherwise;
// a route has agent access only if the file says so. The error names every
// entry that is wrong, and no token.
func Parse(data []byte) (app.Registry, error) {
	var f file
	asJSON, err := yaml.YAMLToJSONStrict(data) // JSON is YAML
	if err != nil {
		return app.Registry{}, errors.New("the registry file is neither YAML nor JSON, or repeats a field")
	}
	if err := json.Unmarshal(asJSON, &f, json.RejectUnknownMembers(true), refuseNull); err != nil {
		var semantic *json.SemanticError
		if errors.As(err, &semantic) && semantic.JSONPointer != "" {
			return app.Registry{}, fmt.Errorf("the registry file has an unknown or mistyped field at %s", semantic.JSONPointer)
		}
		return app.Registry{}, errors.New("the registry file must be one object of clients, routes, sessions, runs and controllers")
	}
	return f.registry()
}

func (f file) registry() (app.Registry, error) {
	var r app.Registry
	var v validator
	for _, c := range f.Clients {
		r.Clients = append(r.Clients, c.entry(&v))
	}
	for _, e := range f.Routes {
		r.Routes = append(r.Routes, e.entry(&v))
	}
	for _, s := range f.Sessions {
		r.Sessions = append(r.Sessions, s.entry(&v))
	}
	for _, e := range f.Runs {
		r.Runs = append(r.Runs, e.entry(&v))
	}
	for _, c := range f.Controllers {
		r.Controllers = append(r.Controllers, c.entry(&v))
	}
	return r, errors.Join(v.problems...)
}
