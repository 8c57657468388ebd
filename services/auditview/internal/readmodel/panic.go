package readmodel

import (
	"errors"
	"fmt"
	"runtime"
)

// PanicError is a panic of ours. It tells a runtime error's text or a value's type; the
// value itself may hold a conversation's text.
type PanicError struct{ What string }

func (e *PanicError) Error() string { return "panic: " + e.What }

// Recovered makes an error of what recover returned.
func Recovered(v any) *PanicError {
	var runtimeErr runtime.Error
	if err, ok := v.(error); ok && errors.As(err, &runtimeErr) {
		return &PanicError{runtimeErr.Error()}
	}
	return &PanicError{fmt.Sprintf("a value of type %T", v)}
}
