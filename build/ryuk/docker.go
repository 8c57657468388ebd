package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// engine is a client of the Docker Engine's HTTP API.
type engine struct {
	base   string
	client *http.Client
}

// socket returns the engine that listens on a Unix socket.
func socket(path string) *engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &engine{
		base:   "http://docker",
		client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: dial}},
	}
}

// call sends one request; what is gone already (404) counts as done, and so does
// what somebody else is removing just now (409).
func (e *engine) call(ctx context.Context, method, path string, out any) (err error) {
	req, err := http.NewRequestWithContext(ctx, method, e.base+path, nil)
	if err != nil {
		return err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusConflict:
		return nil
	case resp.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, body)
	case out == nil:
		return nil
	}
	return json.Unmarshal(body, out)
}

// removed counts what one prune took away.
type removed struct{ containers, networks, volumes, images int }

// prune removes everything that carries all labels of the filter, in the order in
// which it depends on each other. Errors are collected: one stubborn container
// does not keep the rest alive. A filter without a label removes nothing.
func (e *engine) prune(ctx context.Context, filter string) (removed, error) {
	var done removed
	query, err := url.ParseQuery(filter)
	if err != nil {
		return done, err
	}
	if len(query["label"]) == 0 {
		return done, errors.New("a filter without a label is ignored")
	}
	labels, err := json.Marshal(map[string][]string{"label": query["label"]})
	if err != nil {
		return done, err
	}
	where := "filters=" + url.QueryEscape(string(labels))

	var errs []error
	remove := func(count *int, path string) {
		if err := e.call(ctx, http.MethodDelete, path, nil); err != nil {
			errs = append(errs, err)
			return
		}
		*count++
	}
	var containers, networks, images []struct {
		ID string `json:"Id"`
	}
	var volumes struct{ Volumes []struct{ Name string } }
	errs = append(errs, e.call(ctx, http.MethodGet, "/containers/json?all=1&"+where, &containers))
	for _, c := range containers {
		remove(&done.containers, "/containers/"+c.ID+"?force=1&v=1")
	}
	errs = append(errs, e.call(ctx, http.MethodGet, "/networks?"+where, &networks))
	for _, n := range networks {
		remove(&done.networks, "/networks/"+n.ID)
	}
	errs = append(errs, e.call(ctx, http.MethodGet, "/volumes?"+where, &volumes))
	for _, v := range volumes.Volumes {
		remove(&done.volumes, "/volumes/"+v.Name+"?force=1")
	}
	errs = append(errs, e.call(ctx, http.MethodGet, "/images/json?"+where, &images))
	for _, i := range images {
		remove(&done.images, "/images/"+i.ID+"?force=1")
	}
	return done, errors.Join(errs...)
}
