package harmony

import "github.com/cotenant/cotenant/internal/num"

// Net is the network that decides, of which the caller may not change anything.
func (p *Policy) Net() *num.Scorer { return p.net }

// Use gives the policy another network of its shape, and who picks by it: for
// learning while it works. A nil picker takes the highest score.
func (p *Policy) Use(net *num.Scorer, picker Picker) { p.net, p.options.Picker = net, picker }
