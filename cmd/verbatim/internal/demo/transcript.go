package demo

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
)

// printTranscript prints the conversation as the administrator read it.
func (d *demo) printTranscript(t transcript) {
	labels := map[string]string{}
	for _, m := range t.members {
		labels[m.SessionID] = m.DisplayLabel
	}
	d.print.blank()
	d.print.line("%s", d.print.paint("1", "Transcript")+d.print.paint("2", " · as read back; ⇥ is a tab, · a space at the end of a line"))
	for _, e := range t.events {
		switch e.Kind {
		case kindTurnStart:
			d.print.blank()
			d.print.line("  %s", d.print.paint("2", "── "+e.ClientTurnID+" ──"))
		case kindTurnEnd:
			d.print.line("  %s", d.print.paint("2", "── "+e.ClientTurnID+" "+e.Status+" ──"))
		case kindRunLink:
			d.say(e.Sequence, "run", "2", []string{fmt.Sprintf("%s of %s, thread %d", e.RunID, labels[e.MemberSessionID], t.threads[e.Sequence])})
		case kindUser:
			d.say(e.Sequence, "user", "36", readable(e.Content))
		case kindAssistant:
			d.say(e.Sequence, "assistant", "35", readable(e.Content))
		}
	}
}

func (d *demo) say(sequence int, who, code string, lines []string) {
	head := fmt.Sprintf("%4d  ", sequence) + d.print.paint(code, pad(who, 11))
	for _, line := range lines {
		d.print.line("%s%s", head, line)
		head = pad("", 17)
	}
}

// printCommands prints what to try; each command works as it stands.
func (d *demo) printCommands() {
	next := len(events(d.story))
	turn, err := json.Marshal(batch{Events: []event{
		{EventID: "try-1", Sequence: next + 1, ClientTurnID: triedTurn, Kind: kindTurnStart},
		{EventID: "try-2", Sequence: next + 2, ClientTurnID: triedTurn, Kind: kindUser, Content: "Written with curl."},
		{EventID: "try-3", Sequence: next + 3, ClientTurnID: triedTurn, Kind: kindTurnEnd, Status: completed},
	}})
	if err != nil {
		d.print.err = err
		return
	}
	d.print.blank()
	d.print.line("%s", d.print.paint("1", "Try it")+d.print.paint("2", " · the tokens are the demo's own and change with each start"))
	command := func(title string, lines ...string) {
		d.print.blank()
		d.print.line("%s", d.print.paint("2", "# "+title))
		for i, line := range lines {
			end := " \\"
			if i == len(lines)-1 {
				end = ""
			}
			d.print.line("%s%s", line, end)
		}
	}
	asAdmin, asCreator := "curl -sS -H 'Authorization: Bearer "+d.admin.token+"'", "curl -sS -H 'Authorization: Bearer "+d.creator.token+"'"
	command("all conversations, newest first", asAdmin, "  '"+d.Auditview+adminPath+"?limit=10'")
	command("this conversation, every word", asAdmin, "  '"+d.Auditview+adminPath+"/"+d.archiveID+"?after_sequence=0&limit=100'")
	linked := d.cast.members[0]
	command("the run behind the first link, and the conversation it belongs to", asAdmin,
		"  '"+d.Auditview+"/admin/api/threads/"+strconv.FormatInt(linked.thread, 10)+"/agent-runs/"+linked.run+"/trace'")
	command("the delivery that the run caused, replayed in the terminal (add --follow to watch one)",
		"VERBATIM_ADMIN_TOKEN="+d.admin.token+" bin/verbatim replay --auditview "+d.Auditview+" "+d.cast.swarm)
	command("its audit trace, as frozen records", asAdmin, "  '"+d.Auditview+runsPath+d.cast.swarm+"/audit'")
	command("one more turn, written by the agent (sent twice, it is stored once)", asCreator, "  -H 'Content-Type: application/json'",
		"  '"+d.Ingest+archivesPath+"/"+d.archiveID+"/events'", "  -d '"+string(turn)+"'")
	d.print.blank()
	d.print.line("%s", d.print.paint("1", "Ctrl-C stops."))
}
