package exec

// progress foretells how many documents a plan that may end early looks up in all, by the answers that it has given.
type progress struct {
	wanted int64 // answers, those that are skipped included
	spared bool  // putOff has put the question off
}

// putOff returns after how many look-ups it is to be asked whether another plan is cheaper, or 0 for now: left answers are still
// wanted. With a quarter of the answers there, the rest is expected to cost less than it would to count what other plans have.
// The question is put off once, as the answers may stop coming.
func (p *progress) putOff(looked, left int64) (after int64) {
	given := p.wanted - left
	if p.spared || given <= 0 || 4*given < p.wanted {
		return 0
	}
	p.spared = true
	expected := looked * p.wanted / given
	return expected + expected/2
}
