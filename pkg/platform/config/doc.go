// Package config reads a service's configuration from environment variables and
// keeps secrets out of everything that is printed.
//
// A service declares one struct with `env` tags (github.com/caarlos0/env) and
// calls [Load] once at its start. All problems come back together, so that an
// operator corrects a deployment in one go. Problems name variables and never
// hold values: a value in the wrong variable may well be a password.
package config
