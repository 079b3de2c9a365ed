package command

import (
	"context"
	"errors"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/amends-dev/amends/coordinator"
	"github.com/amends-dev/amends/saga"
)

// adopt puts on record what stands of two orders whose works were forgotten: of 32 nobody can tell
// whether the receipt was sent, and under the mark of 33 stands another invoice.
func adopt(ctx context.Context, l store) error {
	log := logrus.New()
	log.SetOutput(io.Discard)
	c, err := coordinator.New(l, &coordinator.Options{Log: log}) //nolint:contextcheck // it starts nothing
	if err != nil {
		return err
	}
	d, err := invoicing(1)
	if err != nil {
		return err
	}
	if err := c.Register(ctx, d); err != nil {
		return err
	}
	by := saga.Actor{Name: "anna", Reason: "the ledger was lost"}
	got, err := c.Adopt(ctx, []coordinator.Adoption{
		{
			Saga: "order-to-invoice", Work: orderID(32), Input: shopOrder{32, canary}, Revision: "32", By: by,
			Effects: map[string]coordinator.Effect{"customer": {Output: made{"cus_1"}}, "invoice": {Output: made{"inv_32"}}, "mark-synced": {}},
		},
		{
			Saga: "order-to-invoice", Work: orderID(33), Input: shopOrder{33, canary}, Revision: "33", By: by,
			Effects:    map[string]coordinator.Effect{"customer": {Output: made{"cus_1"}, Revision: "11"}, "invoice": {ExternalID: "inv_9", Foreign: true}},
			Quarantine: "inv_9 is over 90.00, and the order over 100.00",
		},
	})
	if err != nil {
		return err
	}
	return errors.Join(got[0].Err, got[1].Err)
}
