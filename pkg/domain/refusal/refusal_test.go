package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"verbatim.internal/pkg/domain/refusal"
)

func TestCodesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	for code, want := range map[refusal.Code]string{
		refusal.InvalidRequest:          "invalid_request",
		refusal.AuthorizationInvalid:    "conversation_audit_authorization_invalid",
		refusal.NotFound:                "conversation_audit_not_found",
		refusal.NotReady:                "conversation_audit_not_ready",
		refusal.Conflict:                "conversation_audit_conflict",
		refusal.Limit:                   "conversation_audit_limit",
		refusal.Unavailable:             "conversation_audit_unavailable",
		refusal.CrossBindingUnavailable: "conversation_audit_cross_binding_unavailable",
	} {
		if string(code) != want {
			t.Errorf("got %s, want %s", code, want)
		}
	}
}

func TestRefusalsAreFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("append: %w", refusal.New(refusal.Conflict, "a gap"))
	if !errors.Is(err, refusal.New(refusal.Conflict, "another message")) {
		t.Error("a refusal with the same code is not the same")
	}
	if errors.Is(err, refusal.New(refusal.Limit, "a gap")) || errors.Is(err, errors.ErrUnsupported) {
		t.Error("another error is the same")
	}
	if got := refusal.CodeOf(err); got != refusal.Conflict {
		t.Errorf("code %q", got)
	}
	if got := err.Error(); got != "append: conversation_audit_conflict: a gap" {
		t.Errorf("text %q", got)
	}
	if got := refusal.CodeOf(errors.ErrUnsupported); got != "" {
		t.Errorf("code %q of what is no refusal", got)
	}
	if got := refusal.CodeOf(nil); got != "" {
		t.Errorf("code %q of nil", got)
	}
}
