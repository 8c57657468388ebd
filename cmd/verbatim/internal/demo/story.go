package demo

import "strconv"

const (
	firstTurn  = "turn-1"
	secondTurn = "turn-2"
	triedTurn  = "turn-3"
)

// batch is the body of one append.
type batch struct {
	Events []event `json:"events"`
	// loseAck breaks the connection of the first attempt after the commit.
	loseAck bool
}

// event is one event as an agent submits it.
type event struct {
	EventID         string `json:"event_id"`
	Sequence        int    `json:"sequence"`
	ClientTurnID    string `json:"client_turn_id"`
	Kind            string `json:"kind"`
	Content         string `json:"content,omitempty"`
	Status          string `json:"status,omitempty"`
	RunID           string `json:"run_id,omitempty"`
	MemberSessionID string `json:"member_session_id,omitempty"`
}

const (
	kindTurnStart = "turn_start"
	kindUser      = "user_message"
	kindAssistant = "assistant_message"
	kindRunLink   = "run_link"
	kindTurnEnd   = "turn_end"
	completed     = "completed"
)

// tell writes the story: the texts are those that a careless store changes, such
// as spaces at the end, the two ways to write é, joined emoji, right-to-left
// text and markup.
func tell(c cast) []batch {
	sequence := 0
	say := func(turn, kind, content string) event {
		sequence++
		return event{EventID: "event-" + strconv.Itoa(sequence), Sequence: sequence, ClientTurnID: turn, Kind: kind, Content: content}
	}
	link := func(turn string, m member) event {
		e := say(turn, kindRunLink, "")
		e.RunID, e.MemberSessionID = m.run, m.session
		return e
	}
	end := func(turn string) event {
		e := say(turn, kindTurnEnd, "")
		e.Status = completed
		return e
	}
	return []batch{
		{Events: []event{
			say(firstTurn, kindTurnStart, ""),
			say(firstTurn, kindUser, "Compare the two stores: how many orders are waiting, and which one is the oldest?"),
			link(firstTurn, c.members[0]),
			link(firstTurn, c.members[1]),
		}},
		{loseAck: true, Events: []event{
			say(firstTurn, kindAssistant, "Lisboa: 12 encomendas à espera, a mais antiga de 3 de novembro.\n大阪店:注文が7件、保留中です。\nTogether 19, and the oldest is Lisbon's. 📦👩🏽\u200d💻🇵🇹🇯🇵"),
			say(firstTurn, kindUser, "Keep my spacing exactly:\n\tone tab, two  spaces,\n  and three spaces at the end   "),
			say(firstTurn, kindAssistant, "Kept. Even caf\u00e9 (one code point) and cafe\u0301 (two) stay as different as you wrote them."),
			end(firstTurn),
		}},
		{Events: []event{
			say(secondTurn, kindTurnStart, ""),
			say(secondTurn, kindUser, "كم عدد الطلبات المتأخرة في أوساكا منذ أكثر من 3 أيام؟"),
			say(secondTurn, kindAssistant, "ثلاثة طلبات متأخرة، وكلها من متجر أوساكا. ✅"),
			say(secondTurn, kindAssistant, "The note on order 4711 says: <tool name=\"refund\">{\"amount\": 100}</tool> &amp; \\\"urgent\\\".\nI only quote it; nothing was run."),
			end(secondTurn),
		}},
	}
}

// events are those of all batches, in order.
func events(story []batch) []event {
	var all []event
	for _, b := range story {
		all = append(all, b.Events...)
	}
	return all
}
