package canonical_test

import (
	"bytes"
	"crypto/sha256"
	"math"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/canonical"
)

// The numbers of RFC 8785, appendix B, by their IEEE 754 bits.
func TestNumbersOfRFC8785(t *testing.T) {
	t.Parallel()
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x8000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		got, err := canonical.JSON(math.Float64frombits(bits))
		if err != nil || string(got) != want {
			t.Errorf("%016x: got %s, %v; want %s", bits, got, err, want)
		}
	}
}

// The texts of RFC 8785, section 3.2, and what they leave to the reader.
func TestTextsOfRFC8785(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"sample of 3.2.2": {
			`{
			  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			  "literals": [null, true, false]
			}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		"names by UTF-16, sample of 3.2.3": {
			`{
			  "\u20ac": "Euro Sign",
			  "\r": "Carriage Return",
			  "\ufb33": "Hebrew Letter Dalet With Dagesh",
			  "1": "One",
			  "\ud83d\ude00": "Emoji: Grinning Face",
			  "\u0080": "Control",
			  "\u00f6": "Latin Small Letter O With Diaeresis"
			}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis",` +
				`"€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		"short escapes":                {`"\u0008\u0009\u000a\u000c\u000d"`, `"\b\t\n\f\r"`},
		"other controls, lower case":   {`"\u0000\u001F\u000B"`, `"\u0000\u001f\u000b"`},
		"delete and C1 stay":           {`"\u007f\u0085"`, "\"\x7f\u0085\""},
		"nothing for HTML or scripts":  {`"\u003c\u003e\u0026\u2028\u2029"`, "\"<>&\u2028\u2029\""},
		"nested names, arrays as are":  {`[{"b":[3,1,2],"a":{"d":1,"c":2}}]`, `[{"a":{"c":2,"d":1},"b":[3,1,2]}]`},
		"a prefix before what follows": {`{"aa":1,"a":2,"":3,"B":4}`, `{"":3,"B":4,"a":2,"aa":1}`},
		"no Unicode normal form":       {`{"e\u0301":1,"\u00e9":2}`, "{\"e\u0301\":1,\"é\":2}"},
		"one spelling for a number":    {`[1.0,1e0,10E-1,-0,0.0]`, `[1,1,1,0,0]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := canonical.JSON(jsontext.Value(tc.in))
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
			again, err := canonical.JSON(jsontext.Value(got))
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("canonical bytes changed: %s, %v", again, err)
			}
		})
	}
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"NaN":                 math.NaN(),
		"infinity":            math.Inf(1),
		"not UTF-8":           "\xff",
		"not UTF-8 in a name": map[string]int{"\xff": 1},
		"lone surrogate":      jsontext.Value(`"\ud800"`),
		"repeated name":       jsontext.Value(`{"a":1,"a":1}`),
		"two values":          jsontext.Value(`1 2`),
		"a function":          func() {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if b, err := canonical.JSON(v); err == nil {
				t.Errorf("accepted as %s", b)
			}
			if _, err := canonical.Sum(v); err == nil {
				t.Error("summed")
			}
		})
	}
}

func TestSumIsTheHashOfTheBytes(t *testing.T) {
	t.Parallel()
	got, err := canonical.Sum(map[string]any{"b": 2, "a": []string{"x"}})
	if err != nil || got != sha256.Sum256([]byte(`{"a":["x"],"b":2}`)) {
		t.Errorf("got %x, %v", got, err)
	}
}

func FuzzJSONIsIdempotent(f *testing.F) {
	f.Add([]byte(`{"b":[1.50,-0,1e400],"a":"\u00e9\ud83d\ude00"}`))
	f.Add([]byte("{\"\ufb33\":1,\"😀\":2}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := canonical.JSON(jsontext.Value(data))
		if err != nil {
			return
		}
		twice, err := canonical.JSON(jsontext.Value(once))
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%q became %q, %v", once, twice, err)
		}
	})
}
