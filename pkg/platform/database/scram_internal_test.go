package database

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScramVerifierIsPostgreSQLs(t *testing.T) {
	t.Parallel()
	// RFC 7677's example: the proof that its client sends belongs to this stored key.
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	require.NoError(t, err)
	verifier, err := scramVerifierSalted("pencil", salt)
	require.NoError(t, err)
	require.Equal(t, "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"+
		"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=", verifier)
}

func TestScramVerifierHasItsOwnSalt(t *testing.T) {
	t.Parallel()
	one, err := scramVerifier("pencil")
	require.NoError(t, err)
	two, err := scramVerifier("pencil")
	require.NoError(t, err)
	require.NotEqual(t, one, two)
}

func TestScramVerifierRefusesWhatNeedsNormalisation(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", "ü", "a\nb", "a\x00", "\x7f"} {
		_, err := scramVerifier(password)
		require.ErrorIs(t, err, errPasswordCharacters)
	}
}
