package archive_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/archive"
)

// drawCreation returns a creation and its bearer: mostly a valid one.
func drawCreation(t *rapid.T) (in mCreation, bearer string) {
	in = mCreation{
		v2: rapid.Bool().Draw(t, "v2"), archive: drawn(t, "archive id", runID, archiveID, strings.ToUpper(archiveID)),
		conversation: drawn(t, "conversation", "c-1", "c-1", "c-2"), route: drawn(t, "route", "customers", "customers", "returns", "orders"),
	}
	sessions := worldSessions
	if !in.v2 && !rarely(t, "any session", 8) {
		sessions = worldSessions[:3]
	}
	labels := []string{"", "", "Étage 1", "two"}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(sessions), 1, 3, rapid.ID).Draw(t, "members") {
		m := archive.MemberFields{SessionID: id, ClientAppID: "crm-demo", Route: drawn(t, "member's route", "customers", "customers", "returns")}
		switch i := slices.Index(worldSessions, id); {
		case i == 5:
			m.ClientAppID = "other-demo"
		case i >= 3:
			m.ClientAppID, m.Route = "erp-demo", drawn(t, "member's route", "orders", "orders", "returns")
		}
		in.members = append(in.members, m)
		if label := drawn(t, "label", labels...); label != "" && in.v2 {
			in.members[len(in.members)-1].Label = &label
		} else if label != "" {
			if in.labels == nil {
				in.labels = map[string]string{}
			}
			in.labels[id] = label
		}
	}
	bearer = drawn(t, "bearer", in.members...).SessionID
	if rarely(t, "flawed", 6) {
		bearer = flaw(t, &in, bearer)
	}
	return in, bearer
}

// flaw makes one thing of a creation wrong, or merely different; it returns the bearer.
func flaw(t *rapid.T, in *mCreation, bearer string) string {
	i := rapid.IntRange(0, len(in.members)-1).Draw(t, "member")
	m := &in.members[i]
	switch drawn(t, "flaw", "bearer", "archive", "conversation", "route", "client", "session", "twice", "case", "label", "none") {
	case "bearer":
		return drawn(t, "another bearer", worldSessions...)
	case "archive":
		in.archive = drawn(t, "bad id", "", "a", strings.Replace(archiveID, "-42", "-62", 1))
	case "conversation":
		in.conversation = drawn(t, "bad conversation", "", "-", "a b", strings.Repeat("c", 129))
	case "route":
		in.route, m.Route = "auto", drawn(t, "bad route", "auto", "", "Orders", "x")
	case "client":
		m.ClientAppID = drawn(t, "another client", "crm-demo", "erp-demo", "nobody", "-")
	case "session":
		m.SessionID = drawn(t, "another session", "", "s", sessionUUID(1), worldSessions[4])
	case "twice":
		in.members = append(in.members, *m)
		in.members[len(in.members)-1].SessionID = strings.ToUpper(m.SessionID)
	case "case":
		m.SessionID = strings.ToUpper(m.SessionID)
	case "label":
		label := drawn(t, "another label", "", " ", "new", "a\x00", strings.Repeat("😀", 65))
		m.Label = &label
		in.labels = map[string]string{drawn(t, "labelled", m.SessionID, strings.ToUpper(m.SessionID), worldSessions[5], "x"): label}
	case "none":
		in.members = nil
	}
	if in.v2 {
		in.labels = nil // v2 has them with its members alone
		return bearer
	}
	for i := range in.members {
		in.members[i].Label = nil
	}
	return bearer
}

// sent is an event as a caller submits it.
func sent(e mEvent) archive.Fields {
	f := archive.Fields{EventID: e.id, Sequence: int64(e.seq), ClientTurnID: e.turn, Kind: e.kind}
	for p, v := range map[**string]string{&f.Content: e.content, &f.Status: e.status, &f.RunID: e.run, &f.MemberSessionID: e.member} {
		if v != "" {
			*p = ptr(v)
		}
	}
	return f
}

// drawNext returns 1 to 6 events that continue a by the rules.
func drawNext(t *rapid.T, m *model, a *mArchive) []archive.Fields {
	events := slices.Clone(a.events)
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		e := mEvent{seq: len(events) + 1, turn: running(events)}
		e.id = fmt.Sprintf("e-%d", e.seq)
		kinds := []string{"user_message", "assistant_message", "turn_end", "run_link"}
		if e.turn == "" {
			kinds = []string{"turn_start", "turn_start", "run_link"}
		}
		e.kind = drawn(t, "kind", kinds...)
		turns := startedTurns(events)
		if e.kind == "run_link" && len(turns) == 0 {
			e.kind = "turn_start"
		}
		switch e.kind {
		case "turn_start":
			e.turn = fmt.Sprintf("t-%d", len(turns)+1)
		case "turn_end":
			e.status = drawn(t, "status", "completed", "failed", "cancelled")
		case "run_link":
			e.turn = drawn(t, "turn", turns...)
			x := drawn(t, "member", a.members...)
			e.member, e.run = x.id, drawRun(t, m, a, x, e.turn)
		default:
			e.content = drawn(t, "content", "a", "é€", "😀\n", "0123456789")
		}
		events = append(events, e)
	}
	var fields []archive.Fields
	for _, e := range events[len(a.events):] {
		fields = append(fields, sent(e))
	}
	return fields
}

func startedTurns(events []mEvent) []string {
	var turns []string
	for _, e := range events {
		if e.kind == "turn_start" {
			turns = append(turns, e.turn)
		}
	}
	return turns
}

// drawRun persists the run that a link needs, seldom one that differs, and returns its id.
func drawRun(t *rapid.T, m *model, a *mArchive, x mMember, turn string) string {
	run := mRun{x.id, x.client, x.route, a.conversation, turn, rapid.Int64Range(1, 99).Draw(t, "thread")}
	if rarely(t, "another run", 8) {
		switch drawn(t, "differs in", "session", "client", "route", "conversation", "turn", "thread", "absent", "old") {
		case "session":
			run.session = drawn(t, "session", worldSessions...)
		case "client":
			run.client = drawn(t, "client", worldClients...)
		case "route":
			run.route = drawn(t, "route", worldRoutes...)
		case "conversation":
			run.conversation = "c-2"
		case "turn":
			run.turn = "t-1"
		case "thread":
			run.thread = 0
		case "absent":
			return string(runUUID(0))
		case "old":
			return string(runUUID(rapid.IntRange(0, len(m.runs)).Draw(t, "run")))
		}
	}
	id := string(runUUID(len(m.runs) + 1))
	m.runs[id] = run
	return id
}

// drawRetry returns a stretch of what is stored, as it was sent.
func drawRetry(t *rapid.T, a *mArchive) []archive.Fields {
	from := rapid.IntRange(max(0, len(a.events)-12), len(a.events)-1).Draw(t, "from")
	var fields []archive.Fields
	for _, e := range a.events[from:rapid.IntRange(from+1, len(a.events)).Draw(t, "to")] {
		e.run = drawn(t, "case", e.run, strings.ToUpper(e.run))
		fields = append(fields, sent(e))
	}
	return fields
}

// big is more than a batch may hold, in texts that each are within their limit.
var big = strings.Repeat("€", 50_000)

// spoil makes one thing of a batch wrong, or merely different.
func spoil(t *rapid.T, a *mArchive, batch []archive.Fields) []archive.Fields {
	batch = slices.Clone(batch)
	i := rapid.IntRange(0, len(batch)-1).Draw(t, "event")
	e := &batch[i]
	switch drawn(t, "spoilt", "gap", "all later", "sequence twice", "id twice", "used id", "turn", "kind", "content", "status", "run",
		"member", "extra", "schema", "too high", "too many", "too much", "order", "none") {
	case "gap":
		for j := range batch[i:] {
			batch[i+j].Sequence++
		}
	case "all later":
		for j := range batch {
			batch[j].Sequence += 2
		}
	case "sequence twice":
		e.Sequence = batch[0].Sequence
	case "id twice":
		e.EventID = batch[0].EventID
	case "used id":
		e.EventID = fmt.Sprintf("e-%d", rapid.IntRange(1, len(a.events)+1).Draw(t, "of"))
	case "turn":
		e.ClientTurnID = fmt.Sprintf("t-%d", rapid.IntRange(1, 4).Draw(t, "turn"))
	case "kind":
		*e = archive.Fields{EventID: e.EventID, Sequence: e.Sequence, ClientTurnID: e.ClientTurnID, Kind: drawn(t, "kind", "turn_start", "turn_end", "user_message")}
		switch e.Kind {
		case "turn_end":
			e.Status = ptr("failed")
		case "user_message":
			e.Content = ptr("new")
		}
	case "content":
		e.Content = ptr(drawn(t, "content", "", " \n", "other", "a\x00", strings.Repeat("😀", 32_001)))
	case "status":
		e.Status = ptr(drawn(t, "status", "running", "failed", ""))
	case "run":
		e.RunID = ptr(drawn(t, "run", "", "r", string(runUUID(1)), string(runUUID(2))))
	case "member":
		e.MemberSessionID = ptr(drawn(t, "member", append([]string{"", sessionUUID(1)}, worldSessions...)...))
	case "extra":
		e.Content, e.Status = ptr("a"), ptr("failed")
	case "schema":
		e.EventID = drawn(t, "id", "", "-", "é", "a\n")
	case "too high":
		e.Sequence = drawn[int64](t, "sequence", 0, -1, 20_000, 20_001, 1<<53-1, 1<<53)
	case "too many":
		for len(batch) < 51 {
			batch = append(batch, *e)
		}
	case "too much":
		message := archive.Fields{EventID: "big", Sequence: e.Sequence, ClientTurnID: e.ClientTurnID, Kind: "user_message", Content: &big}
		return append(batch, message, message)
	case "order":
		slices.Reverse(batch)
	case "none":
		return nil
	}
	return batch
}
