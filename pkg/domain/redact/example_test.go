package redact_test

import (
	"fmt"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/redact"
)

func ExampleText() {
	fmt.Println(redact.Text("approved; connect with postgres://ada:hunter2@db/orders, api_key=9f86d081884c7d65"))
	fmt.Println(redact.Text(`{"password":"swordfish","credential_ref":"azkv://vault/orders-db"}`))
	fmt.Println(redact.Text("The password was rotated by agent-7 in run 123e4567-e89b-42d3-a456-426614174001."))
	// Output:
	// approved; connect with postgres://ada:[REDACTED]@db/orders, api_key=[REDACTED]
	// {"password":"[REDACTED]","credential_ref":"azkv://vault/orders-db"}
	// The password was rotated by agent-7 in run 123e4567-e89b-42d3-a456-426614174001.
}

func ExampleIsSecret() {
	fmt.Println(redact.IsSecret("orders.search"), redact.IsSecret("token=9f86d081884c7d65"))
	// Output: false true
}

func ExampleIsVaultRef() {
	fmt.Println(redact.IsVaultRef("azkv://vault/orders-db"), redact.IsVaultRef("azkv://vault"))
	// Output: true false
}

func BenchmarkIsSecret(b *testing.B) {
	for name, in := range map[string]string{
		"identifier": "orders.search", "uuid": "123e4567-e89b-42d3-a456-426614174001", "digest": strings.Repeat("9f86d081", 8),
		"prose": strings.Repeat("The order was checked, priced and sent to the warehouse by agent-7. ", 8)[:512],
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if redact.IsSecret(in) {
					b.Fatal("a secret")
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	const size = 1 << 20
	texts := map[string]string{"secrets": strings.Repeat("see bhk_"+random+" and password=hunter2, then ", size/80)}
	for _, unit := range []string{"token=\"", "eyJ-", "//u:p/"} {
		texts["hostile "+unit] = hostile(size)[unit]
	}
	for name, in := range texts {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				redact.Text(in)
			}
		})
	}
}
