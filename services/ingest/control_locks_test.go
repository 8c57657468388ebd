package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/ingest"
)

// Both doors, and appends between them, lock in one order: nobody ever waits in a circle.
func TestNobodyWaitsInACircle(t *testing.T) {
	t.Parallel()
	c := control(t, 0)
	const rounds = 15
	ctx := context.WithoutCancel(t.Context())
	post := func(method, path, body string) error {
		r, err := ask(ctx, method, c.service.ControlURL()+"/control-api/v1"+path, controller, body)
		if err == nil && r.status >= http.StatusBadRequest {
			err = fmt.Errorf("%s %s: %s", method, path, r.raw)
		}
		return err
	}
	appended := c.archived(t)
	files := []string{
		strings.NewReplacer("allowed_routes: [orders], token", "allowed_routes: [orders, more], token", "agent_access: true}", "agent_access: true, audience: {enabled: true, tenants: [a, c]}}",
			"device_label: two", "device_label: three").Replace(registry),
		registry,
	}
	var all sync.WaitGroup
	failed := make(chan error, 5*rounds)
	every := func(do func(i int) error) {
		all.Go(func() {
			for i := range rounds {
				if err := do(i); err != nil {
					failed <- err
				}
			}
		})
	}
	every(func(i int) error {
		if status := appended(i + 1); status != http.StatusOK {
			return fmt.Errorf("an append: %d", status)
		}
		return nil
	})
	every(func(i int) error {
		return post(http.MethodPut, "/clients/shop", fmt.Sprintf(`{"name":"Shop","allowed_routes":["orders","route-%d"]}`, i))
	})
	every(func(i int) error {
		return post(http.MethodPut, "/routes/orders", fmt.Sprintf(`{"name":"Orders","agent_access":true,"audience":{"enabled":true,"tenants":["a","t%d"]}}`, i))
	})
	every(func(i int) error {
		id := fmt.Sprintf("723e4567-e89b-42d3-a456-%012d", i)
		if err := post(http.MethodPost, "/sessions", issued(`,"session_id":"`+id+`"`)); err != nil {
			return err
		}
		return post(http.MethodPost, "/sessions/"+id+"/revoke", `{}`)
	})
	every(func(i int) error {
		_, err := ingest.Apply(ctx, config.Secret(c.db.ServiceDSN), []byte(files[i%2]))
		return err
	})
	all.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	require.NoError(t, c.service.Stop(ctx)) // sessions of the database tell their counts at their end
	require.Zero(t, count(t, c.admin, `select deadlocks from pg_stat_database where datname = current_database()`))
}
