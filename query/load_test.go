package query_test

import (
	"testing"

	"github.com/jaydb/jay/query"
)

func TestParse_Load(t *testing.T) {
	for text, want := range map[string]string{
		"load(CustomerId).Name":                         "",
		"LOAD( CustomerId ) . Address . City":           "load(CustomerId).Address.City",
		"load(Lines[].Product).Name":                    "",
		"load(Ids[0]).Tags[1].'x y'":                    "",
		"load(load(OrderId).Customer).Name":             "",
		"load('First Name').Name":                       "",
		"load(Customer.'Id.x').Name":                    "",
		"lower(load(CustomerId).Name)":                  "",
		"if(type(load(CustomerId)) = 'object', 1, 2)":   "",
		"load(CustomerId).Where":                        "",
		"load('order'.from).order.'x y'":                "",
		"load(CustomerId).Rate * Price":                 "",
		"year(load(CustomerId).Since)":                  "",
		"if(load(CustomerId).Vip = true, Price * 2, 0)": "",
	} {
		f, err := query.ParseExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want == "" {
			want = text
		}
		if f.String() != want || !f.Loads() {
			t.Errorf("%s is %s, loads %v", text, f, f.Loads())
		}
		again, err := query.ParseExpression(f.String())
		if err != nil || again.String() != want {
			t.Errorf("%s again: %s, %v", text, again, err)
		}
	}
}
