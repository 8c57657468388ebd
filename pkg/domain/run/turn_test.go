package run_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

func TestATurnKeepsWhatWasSentAndItsHashes(t *testing.T) {
	t.Parallel()
	turn, err := run.NewTurn(turnFields())
	if err != nil {
		t.Fatal(err)
	}
	const context = `{"filter":{"by":null,"late":true},"page":"orders"}`
	if string(turn.PageContext) != context || turn.UserInput != "Which orders are late?" {
		t.Errorf("got %s, %q", turn.PageContext, turn.UserInput)
	}
	// The whole request, as RFC 8785 spells it.
	const whole = `{"client_conversation_id":"conv:1","client_turn_id":"turn.1","page_context":` + context +
		`,"renderers":["table.v1","text"],"user_input":"Which orders are late?","user_message_id":"message-1"}`
	if turn.InputHash != sha256.Sum256([]byte(whole)) {
		t.Error("the input's hash is another")
	}
	if turn.UserInputHash != sha256.Sum256([]byte("Which orders are late?")) {
		t.Error("the user input's hash is another")
	}
	if hash := sha256.Sum256([]byte(context)); !slices.Equal(turn.PageContextHash, hash[:]) {
		t.Error("the page context's hash is another")
	}
}

func TestATurnNeedsNoPageContextAndNoRenderers(t *testing.T) {
	t.Parallel()
	f := turnFields()
	f.PageContext, f.Renderers = nil, nil
	turn, err := run.NewTurn(f)
	if err != nil || turn.PageContext != nil || turn.PageContextHash != nil || turn.Renderers != nil {
		t.Errorf("got %+v, %v", turn, err)
	}
	const whole = `{"client_conversation_id":"conv:1","client_turn_id":"turn.1","user_input":"Which orders are late?","user_message_id":"message-1"}`
	if turn.InputHash != sha256.Sum256([]byte(whole)) {
		t.Error("the input's hash is another")
	}
}

func TestEveryPartOfATurnIsPartOfItsInput(t *testing.T) {
	t.Parallel()
	first, err := run.NewTurn(turnFields())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*run.TurnFields){
		"client_conversation_id": func(f *run.TurnFields) { f.ClientConversationID = "conv:2" },
		"client_turn_id":         func(f *run.TurnFields) { f.ClientTurnID = "turn.2" },
		"user_message_id":        func(f *run.TurnFields) { f.UserMessageID = "message-2" },
		"user_input":             func(f *run.TurnFields) { f.UserInput += " " },
		"page_context":           func(f *run.TurnFields) { f.PageContext = jsontext.Value(`{"page":"orders"}`) },
		"no page_context":        func(f *run.TurnFields) { f.PageContext = nil },
		"an empty page_context":  func(f *run.TurnFields) { f.PageContext = jsontext.Value(`{}`) },
		"renderers":              func(f *run.TurnFields) { f.Renderers = []string{"text", "table.v1"} },
		"no renderers":           func(f *run.TurnFields) { f.Renderers = nil },
		"empty renderers":        func(f *run.TurnFields) { f.Renderers = []string{} },
	} {
		f := turnFields()
		change(&f)
		other, err := run.NewTurn(f)
		if err != nil || other.InputHash == first.InputHash {
			t.Errorf("%s: taken for the same input, %v", name, err)
		}
	}
}

func TestTurnsAreRefused(t *testing.T) {
	t.Parallel()
	many := make([]string, run.MaxRenderers+1)
	for i := range many {
		many[i] = fmt.Sprintf("r%d", i)
	}
	for name, tc := range map[string]struct {
		change func(*run.TurnFields)
		want   refusal.Code
	}{
		"no conversation":              {func(f *run.TurnFields) { f.ClientConversationID = "" }, refusal.InvalidRequest},
		"a blank in a turn":            {func(f *run.TurnFields) { f.ClientTurnID = "turn 1" }, refusal.InvalidRequest},
		"a long message id":            {func(f *run.TurnFields) { f.UserMessageID = strings.Repeat("m", 129) }, refusal.InvalidRequest},
		"no input":                     {func(f *run.TurnFields) { f.UserInput = "" }, refusal.InvalidRequest},
		"a blank input":                {func(f *run.TurnFields) { f.UserInput = " \t\n\u3000" }, refusal.InvalidRequest},
		"a control character":          {func(f *run.TurnFields) { f.UserInput = "a\x00b" }, refusal.InvalidRequest},
		"an input not UTF-8":           {func(f *run.TurnFields) { f.UserInput = "\xff" }, refusal.InvalidRequest},
		"a context that is null":       {func(f *run.TurnFields) { f.PageContext = jsontext.Value(`null`) }, refusal.InvalidRequest},
		"a context that is a list":     {func(f *run.TurnFields) { f.PageContext = jsontext.Value(`[{}]`) }, refusal.InvalidRequest},
		"a context that is no JSON":    {func(f *run.TurnFields) { f.PageContext = jsontext.Value(`{"a":1,"a":2}`) }, refusal.InvalidRequest},
		"a context too large":          {func(f *run.TurnFields) { f.PageContext = contextOf(run.MaxPageContextBytes + 1) }, refusal.RunLimit},
		"33 renderers":                 {func(f *run.TurnFields) { f.Renderers = many }, refusal.InvalidRequest},
		"a repeated renderer":          {func(f *run.TurnFields) { f.Renderers = []string{"a", "b", "a"} }, refusal.InvalidRequest},
		"an empty renderer":            {func(f *run.TurnFields) { f.Renderers = []string{""} }, refusal.InvalidRequest},
		"an upper-case renderer":       {func(f *run.TurnFields) { f.Renderers = []string{"Table"} }, refusal.InvalidRequest},
		"a renderer with a dash first": {func(f *run.TurnFields) { f.Renderers = []string{"-a"} }, refusal.InvalidRequest},
		"a long renderer":              {func(f *run.TurnFields) { f.Renderers = []string{strings.Repeat("r", 65)} }, refusal.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := turnFields()
			tc.change(&f)
			_, err := run.NewTurn(f)
			wantCode(t, err, tc.want)
		})
	}
}

// contextOf returns a page context whose canonical form has n bytes.
func contextOf(n int) jsontext.Value {
	return jsontext.Value(`{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`)
}

func TestLimitsOfATurnAreWithinReach(t *testing.T) {
	t.Parallel()
	f := turnFields()
	f.Renderers = []string{strings.Repeat("r", 64)}
	for i := 1; i < run.MaxRenderers; i++ {
		f.Renderers = append(f.Renderers, fmt.Sprintf("0r_.-%d", i))
	}
	// What counts is the canonical form, not the white space around it.
	f.PageContext = append(jsontext.Value(" {\n"+strings.Repeat(" ", 1000)), contextOf(run.MaxPageContextBytes)[1:]...)
	if turn, err := run.NewTurn(f); err != nil || len(turn.PageContext) != run.MaxPageContextBytes {
		t.Errorf("%d bytes, %v", len(turn.PageContext), err)
	}
}

// A host's long numbers are mostly names of things: a double would make others of them.
func TestIntegersOfAPageContextKeepTheirDigits(t *testing.T) {
	t.Parallel()
	f := turnFields()
	f.PageContext = jsontext.Value(`{"price":1.50,"id":12345678901234567890,"n":1e3}`)
	turn, err := run.NewTurn(f)
	if err != nil || string(turn.PageContext) != `{"id":12345678901234567890,"n":1000,"price":1.5}` {
		t.Errorf("got %s, %v", turn.PageContext, err)
	}
	f.PageContext = jsontext.Value(`{"price":1.50,"id":12345678901234567891,"n":1e3}`)
	if other, err := run.NewTurn(f); err != nil || other.InputHash == turn.InputHash {
		t.Errorf("another number is the same input, %v", err)
	}
}

// drawObject draws any JSON object as Go values.
func drawObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		names := rapid.SliceOfNDistinct(rapid.StringN(0, 6, 12), 0, 5, rapid.ID[string]).Draw(t, "names")
		object := make(map[string]any, len(names))
		for _, name := range names {
			object[name] = drawValue(t, depth)
		}
		return object
	})
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.StringN(0, 8, 24).Draw(t, "string")
	case 3:
		return rapid.Int64().Draw(t, "int")
	case 4:
		return rapid.Float64Range(-1e20, 1e20).Draw(t, "float")
	case 5:
		return drawObject(depth-1).Draw(t, "object")
	default:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
}

func TestAPageContextIsTheSameHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		object := drawObject(2).Draw(t, "context")
		plain, err := json.Marshal(object, json.Deterministic(true))
		if err != nil {
			t.Skip("not UTF-8")
		}
		spaced, err := json.Marshal(object, jsontext.Multiline(true), jsontext.EscapeForJS(true), jsontext.EscapeForHTML(true))
		if err != nil {
			t.Fatal(err)
		}
		f, g := turnFields(), turnFields()
		f.PageContext, g.PageContext = plain, spaced
		one, err := run.NewTurn(f)
		if err != nil {
			t.Fatal(err)
		}
		two, err := run.NewTurn(g)
		if err != nil || one.InputHash != two.InputHash || string(one.PageContext) != string(two.PageContext) {
			t.Fatalf("%s and %s differ, %v", one.PageContext, two.PageContext, err)
		}
		// And what is answered is the same context again.
		g.PageContext = one.PageContext
		if three, err := run.NewTurn(g); err != nil || three.InputHash != one.InputHash || string(three.PageContext) != string(one.PageContext) {
			t.Fatalf("%s is not canonical, %v", one.PageContext, err)
		}
	})
}
