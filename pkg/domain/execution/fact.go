package execution

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/canonical"
)

// Fact is something that a later word replaces: a task, an approval, a grant.
type Fact interface {
	// Over returns the facts after this word over what is stored (nil for nothing), in
	// canonical JSON, and whether that is a change. The error is a refusal when what is
	// stored may not change any more.
	Over(stored jsontext.Value) (facts jsontext.Value, changed bool, err error)
	// Final reports whether no other word may come after this one.
	Final() bool
}

// errStored never carries what is stored.
var errStored = errors.New("execution: stored facts are not of their form")

func read[F any](stored jsontext.Value) (F, error) {
	var f F
	if err := json.Unmarshal(stored, &f); err != nil {
		return f, errStored
	}
	return f, nil
}

// write spells facts and compares them with what is stored.
func write(facts any, stored jsontext.Value) (spelled jsontext.Value, changed bool, err error) {
	spelled, err = canonical.JSON(facts)
	return spelled, !bytes.Equal(spelled, stored), err
}

// MayAddTask refuses one task more than an execution may have.
func MayAddTask(tasks int) error {
	if tasks >= MaxTasks {
		return errTaskLimit
	}
	return nil
}
