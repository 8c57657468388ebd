package app

import (
	"context"
	"runtime"
	"slices"

	"verbatim.internal/services/auditview/internal/readmodel"
)

// maxShared bounds the messages of a transaction that several batches share.
const maxShared = 256

// maxWorking returns how many transactions a projector has under way; what comes meanwhile
// waits, and is then applied together. With more of them each does less: on two cores,
// single events went through 1.2 times as fast with one as with two, and 1.8 times as fast
// as with one for each batch.
func maxWorking() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// delivery is one batch that waits to be applied.
type delivery struct {
	ctx      context.Context //nolint:containedctx // it lasts as long as the call that it came with
	messages []readmodel.Message
	streams  []readmodel.Stream
	done     chan struct{}
	result   Result // set, like err, before done is closed
	err      error
}

func (d *delivery) answer(r Result, err error) {
	d.result, d.err = r, err
	close(d.done)
}

func (p *Projector) enqueue(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, d)
	if p.working < p.most {
		p.working++
		go p.work()
	}
}

// work applies what waits until nothing does.
func (p *Projector) work() {
	for {
		together := p.take()
		if together == nil {
			return
		}
		p.applyTogether(together)
	}
}

// take returns the deliveries that are to share the next transaction: the first and those
// after it, in turn, that fit and are about other streams; nil, and one worker less, when
// nothing waits.
func (p *Projector) take() []*delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.working--
		return nil
	}
	var taken, left []*delivery
	messages := 0
	streams := map[readmodel.Stream]bool{}
	for _, d := range p.waiting {
		known := func(s readmodel.Stream) bool { return streams[s] }
		if len(taken) > 0 && (messages+len(d.messages) > maxShared || slices.ContainsFunc(d.streams, known)) {
			left = append(left, d)
			continue
		}
		taken = append(taken, d)
		messages += len(d.messages)
		for _, s := range d.streams {
			streams[s] = true
		}
	}
	p.waiting = left
	return taken
}

func (p *Projector) applyTogether(deliveries []*delivery) {
	if len(deliveries) > 1 && p.share(deliveries) {
		return
	}
	for _, d := range deliveries {
		d.answer(p.apply(d.ctx, d.messages))
	}
}

// share applies deliveries in one transaction and answers each. It reports false, having
// done nothing, when that is not possible.
func (p *Projector) share(deliveries []*delivery) bool {
	var all []readmodel.Message
	for _, d := range deliveries {
		all = append(all, d.messages...)
	}
	// No caller's end may undo the others' work.
	plan, err := p.run(context.WithoutCancel(deliveries[0].ctx), all)
	if err != nil {
		return false
	}
	summary := plan.Summary // of all, told once
	for _, d := range deliveries {
		own := Result{Summary: summary}
		summary = readmodel.Summary{}
		for _, gap := range plan.Gaps {
			if slices.Contains(d.streams, gap.Stream) {
				own.Gaps = append(own.Gaps, gap)
			}
		}
		d.answer(own, nil)
	}
	return true
}
