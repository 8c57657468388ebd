package archive_test

import (
	"testing"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

func TestTurnRules(t *testing.T) {
	t.Parallel()
	const done = archive.Completed
	for name, tc := range map[string]struct {
		stored, batch []archive.Event
		ok            bool
	}{
		"a whole turn":                {nil, []archive.Event{start("t1"), say("t1", "a"), answer("t1", "b"), say("t1", "c"), end("t1", done)}, true},
		"an empty turn":               {nil, []archive.Event{start("t1"), end("t1", archive.Failed)}, true},
		"message before any turn":     {nil, []archive.Event{say("t1", "a")}, false},
		"end before any turn":         {nil, []archive.Event{end("t1", done)}, false},
		"start while another runs":    {[]archive.Event{start("t1")}, []archive.Event{start("t2")}, false},
		"start while it runs":         {[]archive.Event{start("t1")}, []archive.Event{start("t1")}, false},
		"start twice in one batch":    {nil, []archive.Event{start("t1"), start("t2")}, false},
		"start of a used id":          {[]archive.Event{start("t1"), end("t1", done)}, []archive.Event{start("t1")}, false},
		"used in the same batch":      {nil, []archive.Event{start("t1"), end("t1", done), start("t1")}, false},
		"used long before":            {[]archive.Event{start("t1"), end("t1", done), start("t2"), end("t2", done)}, []archive.Event{start("t1")}, false},
		"message of a turn that runs": {[]archive.Event{start("t1")}, []archive.Event{say("t1", "a")}, true},
		"message of another turn":     {[]archive.Event{start("t1")}, []archive.Event{say("t2", "a")}, false},
		"message of an ended turn":    {[]archive.Event{start("t1"), end("t1", done)}, []archive.Event{answer("t1", "a")}, false},
		"ended in the same batch":     {[]archive.Event{start("t1")}, []archive.Event{end("t1", done), answer("t1", "a")}, false},
		"message of an earlier turn":  {[]archive.Event{start("t1"), end("t1", done), start("t2")}, []archive.Event{say("t1", "a")}, false},
		"ids differ by case":          {[]archive.Event{start("t1")}, []archive.Event{say("T1", "a")}, false},
		"end of another turn":         {[]archive.Event{start("t1")}, []archive.Event{end("t2", done)}, false},
		"end twice":                   {[]archive.Event{start("t1"), end("t1", done)}, []archive.Event{end("t1", done)}, false},
		"end of an earlier turn":      {[]archive.Event{start("t1"), end("t1", done), start("t2")}, []archive.Event{end("t1", done)}, false},
		"end, next, end":              {[]archive.Event{start("t1")}, []archive.Event{end("t1", done), start("t2"), end("t2", archive.Cancelled)}, true},
		"an id used by case only":     {[]archive.Event{start("t1"), end("t1", done)}, []archive.Event{start("T1")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, j := readyV1(t), &journal{}
			if len(tc.stored) > 0 {
				j.append(t, a, numbered(1, tc.stored...))
			}
			batch := numbered(len(tc.stored)+1, tc.batch...)
			if tc.ok {
				j.append(t, a, batch)
			} else {
				j.wantAppendRefused(t, refusal.Conflict, a, batch)
			}
		})
	}
}

// persisted is the run that a link of member's in turn t1 matches.
func persisted(id int, member identity.UUID, b identity.Binding) identity.Run {
	return identity.Run{
		RunID: runUUID(id), SessionID: member, Binding: b, ThreadID: 70 + int64(id),
		ClientConversationID: conversation, ClientTurnID: "t1", CreatedAt: instant,
	}
}

func runsOf(runs ...identity.Run) map[identity.UUID]identity.Run {
	m := make(map[identity.UUID]identity.Run)
	for _, r := range runs {
		m[r.RunID] = r
	}
	return m
}

// Every part of a run must match the link, its member's binding and the archive.
func TestRunLinksMatchThePersistedRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*identity.Run)
		ok     bool
	}{
		"as it is":             {func(*identity.Run) {}, true},
		"highest thread":       {func(r *identity.Run) { r.ThreadID = 1<<53 - 1 }, true},
		"no thread":            {func(r *identity.Run) { r.ThreadID = 0 }, false},
		"another member's":     {func(r *identity.Run) { r.SessionID = sessionC }, false},
		"a stranger's":         {func(r *identity.Run) { r.SessionID = identity.UUID(sessionUUID(1)) }, false},
		"another client":       {func(r *identity.Run) { r.Binding.ClientAppID = "other" }, false},
		"another route":        {func(r *identity.Run) { r.Binding.RouteKey = "returns" }, false},
		"another conversation": {func(r *identity.Run) { r.ClientConversationID = "other" }, false},
		"conversation by case": {func(r *identity.Run) { r.ClientConversationID = "Conversation-stable-id" }, false},
		"no conversation":      {func(r *identity.Run) { r.ClientConversationID = "" }, false},
		"another turn":         {func(r *identity.Run) { r.ClientTurnID = "t2" }, false},
		"no turn":              {func(r *identity.Run) { r.ClientTurnID = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for version, b := range map[int]identity.Binding{archive.CommonBinding: crm, archive.MemberBindings: erp} {
				a := readyV1(t)
				if version == archive.MemberBindings {
					a = readyV2(t)
				}
				run := persisted(1, sessionB, b)
				tc.change(&run)
				j := &journal{runs: runsOf(run)}
				j.append(t, a, numbered(1, start("t1")))
				batch := numbered(2, link(sessionB, 1))
				if !tc.ok {
					j.wantAppendRefused(t, refusal.Conflict, a, batch)
					continue
				}
				fresh := j.append(t, a, batch)
				if len(fresh) != 1 || fresh[0].ThreadID != run.ThreadID || batch[0].ThreadID != 0 {
					t.Errorf("v%d: got %+v from %+v", version, fresh, batch)
				}
			}
		})
	}
}

// In v2 the writer's binding does not stand in for the member's.
func TestRunLinksOfV2AreHeldToTheMembersOwnBinding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		member identity.UUID
		b      identity.Binding
		ok     bool
	}{
		"the writer's own":             {sessionA, crm, true},
		"the member's own":             {sessionB, erp, true},
		"the writer's, for the member": {sessionB, crm, false},
		"the member's, for the writer": {sessionA, erp, false},
		"client of one, route of both": {sessionB, binding("erp-demo", "customers"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, j := readyV2(t), &journal{runs: runsOf(persisted(1, tc.member, tc.b))}
			batch := numbered(1, start("t1"), link(tc.member, 1))
			if tc.ok {
				j.append(t, a, batch)
			} else {
				j.wantAppendRefused(t, refusal.Conflict, a, batch)
			}
		})
	}
}

func TestRunLinksInTheOrderOfTurns(t *testing.T) {
	t.Parallel()
	const done = archive.Completed
	stranger := identity.UUID(sessionUUID(1))
	for name, tc := range map[string]struct {
		stored, batch []archive.Event
		ok            bool
	}{
		"in the running turn":         {[]archive.Event{start("t1")}, []archive.Event{link(sessionA, 1)}, true},
		"in the batch that starts":    {nil, []archive.Event{start("t1"), link(sessionA, 1), link(sessionB, 2)}, true},
		"late, nothing runs":          {[]archive.Event{start("t1"), end("t1", done)}, []archive.Event{link(sessionA, 1)}, true},
		"late, in the batch of end":   {[]archive.Event{start("t1")}, []archive.Event{end("t1", done), link(sessionA, 1)}, true},
		"late, while another runs":    {[]archive.Event{start("t1"), end("t1", done), start("t2")}, []archive.Event{link(sessionA, 1)}, true},
		"turn that has not started":   {nil, []archive.Event{link(sessionA, 1)}, false},
		"before it starts":            {nil, []archive.Event{link(sessionA, 1), start("t1")}, false},
		"another turn has started":    {[]archive.Event{start("t2")}, []archive.Event{link(sessionA, 1)}, false},
		"no such run":                 {[]archive.Event{start("t1")}, []archive.Event{link(sessionA, 9)}, false},
		"no member":                   {[]archive.Event{start("t1")}, []archive.Event{link(stranger, 4)}, false},
		"twice, stored":               {[]archive.Event{start("t1"), link(sessionA, 1)}, []archive.Event{link(sessionA, 1)}, false},
		"twice, in one batch":         {[]archive.Event{start("t1")}, []archive.Event{link(sessionA, 1), link(sessionA, 1)}, false},
		"in another archive":          {[]archive.Event{start("t1")}, []archive.Event{link(sessionA, 3)}, false},
		"two runs of one member":      {[]archive.Event{start("t1")}, []archive.Event{link(sessionA, 1), link(sessionA, 5)}, true},
		"the link does not start one": {nil, []archive.Event{start("t1"), end("t1", done), link(sessionA, 1), say("t1", "a")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := readyV1(t)
			j := &journal{
				runs:   runsOf(persisted(1, sessionA, crm), persisted(2, sessionB, crm), persisted(3, sessionA, crm), persisted(4, stranger, crm), persisted(5, sessionA, crm)),
				linked: map[identity.UUID]bool{runUUID(3): true},
			}
			if len(tc.stored) > 0 {
				j.append(t, a, numbered(1, tc.stored...))
			}
			batch := numbered(len(tc.stored)+1, tc.batch...)
			if tc.ok {
				j.append(t, a, batch)
			} else {
				j.wantAppendRefused(t, refusal.Conflict, a, batch)
			}
		})
	}
}

// Late evidence joins its own turn; it neither reopens that nor touches a newer one.
func TestRunLinksNeverMoveTurnsOrText(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string][]archive.Event{
		"ended":         {start("t1"), end("t1", archive.Failed)},
		"another runs":  {start("t1"), end("t1", archive.Failed), start("t2"), say("t2", "a")},
		"another ended": {start("t1"), end("t1", archive.Failed), start("t2"), end("t2", archive.Cancelled)},
		"running":       {start("t1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, j := readyV1(t), &journal{runs: runsOf(persisted(1, sessionA, crm))}
			j.append(t, a, numbered(1, stored...))
			want := deepCopy(a)
			j.append(t, a, numbered(len(stored)+1, link(sessionA, 1)))
			want.LastSequence++
			want.StreamVersion++
			if a.CurrentTurnID != want.CurrentTurnID || a.LastTurnStatus != want.LastTurnStatus || a.TurnCount != want.TurnCount ||
				a.MessageCount != want.MessageCount || a.TextBytes != want.TextBytes || a.LastSequence != want.LastSequence || a.StreamVersion != want.StreamVersion {
				t.Errorf("got %+v, want %+v", a, want)
			}
		})
	}
}

// A link that is stored is acknowledged again although its run is linked by now.
func TestARetriedRunLinkIsSkipped(t *testing.T) {
	t.Parallel()
	a, j := readyV1(t), &journal{runs: runsOf(persisted(1, sessionA, crm))}
	batch := numbered(1, start("t1"), link(sessionA, 1))
	j.append(t, a, batch)
	if fresh := j.append(t, a, batch); len(fresh) != 0 {
		t.Errorf("%d events are new", len(fresh))
	}
	j.runs = nil
	if fresh := j.append(t, a, batch); len(fresh) != 0 {
		t.Errorf("without the run, %d events are new", len(fresh))
	}
}
