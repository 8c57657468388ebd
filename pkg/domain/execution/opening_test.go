package execution_test

import (
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
)

func TestNamesHaveOneForm(t *testing.T) {
	t.Parallel()
	for _, name := range names() {
		if !execution.IsName(name) {
			t.Errorf("%q is refused", name)
		}
		if id, err := execution.ParseID(name); id != name || err != nil {
			t.Errorf("%q is no id: %v", name, err)
		}
	}
	for what, name := range unnamed() {
		if execution.IsName(name) {
			t.Errorf("%s is a name", what)
		}
		_, err := execution.ParseID(name)
		wantCode(t, err, refusal.InvalidRequest)
	}
}

func TestEventTypesAreDotted(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"task.created", "deployment.status_changed", "a.b.c.d", "x.y_9", "n." + strings.Repeat("a", 126),
	} {
		if !execution.IsEventType(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{
		"", "task", ".", "task.", ".task", "a..b", "a.b.c.d.e", "Task.created", "task.Created", "task.1st", "task created", "task.c-d",
		"task.created\n", "n." + strings.Repeat("a", 127), "sk_live_" + strings.Repeat("a1b2c3d4", 4) + ".x",
	} {
		if execution.IsEventType(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestAnOpeningIsReadWhole(t *testing.T) {
	t.Parallel()
	full := execution.OpeningFields{
		SwarmID: "swarm/1", ManagerDeploymentID: ptr("mgr-1"), DeploymentID: ptr("dep-1"), CorrelationID: ptr("corr-1"),
		RunID: ptr("223E4567-E89B-42D3-A456-426614174001"),
	}
	got, err := execution.NewOpening(full)
	want := execution.Opening{
		SwarmID: "swarm/1", ManagerDeploymentID: "mgr-1", DeploymentID: "dep-1", CorrelationID: "corr-1",
		RunID: "223e4567-e89b-42d3-a456-426614174001",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	bare, err := execution.NewOpening(execution.OpeningFields{SwarmID: "s"})
	if err != nil || bare != (execution.Opening{SwarmID: "s"}) {
		t.Errorf("got %+v, %v", bare, err)
	}
	for what, name := range unnamed() {
		for field, f := range map[string]execution.OpeningFields{
			"swarm": {SwarmID: name}, "manager": {SwarmID: "s", ManagerDeploymentID: &name},
			"deployment": {SwarmID: "s", DeploymentID: &name}, "correlation": {SwarmID: "s", CorrelationID: &name},
			"run": {SwarmID: "s", RunID: &name},
		} {
			if _, err := execution.NewOpening(f); refusal.CodeOf(err) != refusal.InvalidRequest {
				t.Errorf("%s as %s: got %v", what, field, err)
			}
		}
	}
	_, err = execution.NewOpening(execution.OpeningFields{SwarmID: "s", RunID: ptr("run-1")})
	wantCode(t, err, refusal.InvalidRequest)
}

func TestAnOpeningIsFrozen(t *testing.T) {
	t.Parallel()
	stored := execution.Opening{SwarmID: "s", ManagerDeploymentID: "m", DeploymentID: "d", CorrelationID: "c", RunID: "r"}
	if err := stored.Again(stored); err != nil {
		t.Errorf("the same again: %v", err)
	}
	for name, change := range map[string]func(*execution.Opening){
		"manager":     func(o *execution.Opening) { o.ManagerDeploymentID = "" },
		"deployment":  func(o *execution.Opening) { o.DeploymentID = "e" },
		"correlation": func(o *execution.Opening) { o.CorrelationID = "C" },
		"run":         func(o *execution.Opening) { o.RunID = "" },
	} {
		other := stored
		change(&other)
		if err := other.Again(stored); err != execution.ErrOpened { //nolint:errorlint // the sentinel itself
			t.Errorf("another %s: got %v", name, err)
		}
	}
}

func TestAttributionsAreNames(t *testing.T) {
	t.Parallel()
	got, err := execution.NewAttribution(execution.AttributionFields{
		UserID: []string{"ada@example.com"}, ChannelID: []string{"42"}, Role: []string{"impl"}, InstanceID: []string{"agent-7"}, TaskID: []string{"t/1"},
	})
	if want := (execution.Attribution{UserID: "ada@example.com", ChannelID: "42", Role: "impl", InstanceID: "agent-7", TaskID: "t/1"}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := execution.NewAttribution(execution.AttributionFields{}); err != nil || got != nobody {
		t.Errorf("got %+v, %v", got, err)
	}
	for what, name := range unnamed() {
		one := []string{name}
		for header, f := range map[string]execution.AttributionFields{
			"user": {UserID: one}, "channel": {ChannelID: one}, "role": {Role: one}, "instance": {InstanceID: one}, "task": {TaskID: one},
		} {
			if _, err := execution.NewAttribution(f); refusal.CodeOf(err) != refusal.InvalidRequest {
				t.Errorf("%s as %s: got %v", what, header, err)
			}
		}
	}
	_, err = execution.NewAttribution(execution.AttributionFields{UserID: []string{"a", "a"}})
	wantCode(t, err, refusal.InvalidRequest)
}
