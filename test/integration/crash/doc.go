// Package crash holds the tests of what a crash leaves: both services as processes of
// their own, joined by the http transport, are killed in the middle of their work, and
// so is PostgreSQL. Whatever happens, every acknowledged event is served exactly once,
// in order and byte for byte, and nothing that was never sent appears.
//
// The rounds of crashes run on a PostgreSQL of their own, with its durability on and its
// data in a volume; the other tests on the server that all tests share. Random choices
// come from a seed that is logged; VERBATIM_TEST_SEED repeats one.
package crash
