package postgres

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/services/ingest/internal/app"
)

type controllerRow struct {
	Name        string `gorm:"primaryKey"`
	Permissions textArray
	CreatedAt   time.Time
	UpdatedAt   time.Time `gorm:"autoUpdateTime:false"`
}

// TableName implements gorm's Tabler.
func (controllerRow) TableName() string { return "bz_controllers" }

type controllerTokenRow struct {
	TokenHash  []byte `gorm:"primaryKey"`
	Controller string
	CreatedAt  time.Time
}

// TableName implements gorm's Tabler.
func (controllerTokenRow) TableName() string { return "bz_controller_tokens" }

func (a *application) controllers(r app.Registry) error {
	for _, c := range r.Controllers {
		stored, found, err := find[controllerRow](a.tx, "name", c.Name)
		if err != nil {
			return err
		}
		var tokens [][]byte
		if err := a.tx.Model(&controllerTokenRow{}).Where("controller = ?", c.Name).Pluck("token_hash", &tokens).Error; err != nil {
			return err
		}
		e := &entry{kind: registryv1.KindController, name: c.Name, found: found}
		shows(e, "permissions", stored.Permissions, textArray(c.Permissions), slices.Equal(stored.Permissions, c.Permissions))
		token := a.onlyToken(e, tokens, c.Token, app.ControllerTokenPrefix)
		wanted := controllerRow{Name: c.Name, Permissions: c.Permissions, CreatedAt: a.Now, UpdatedAt: a.Now}
		if err := a.putController(e, wanted, token); err != nil {
			return err
		}
	}
	return nil
}

// putController stores a controller; a token that is not nil ends all others.
func (a *application) putController(e *entry, wanted controllerRow, token []byte) error {
	if err := write(a, e, &wanted); err != nil {
		return err
	}
	if token != nil {
		if err := a.tx.Where("controller = ?", e.name).Delete(&controllerTokenRow{}).Error; err != nil {
			return err
		}
		row := controllerTokenRow{TokenHash: token, Controller: e.name, CreatedAt: a.Now}
		if err := a.tx.Create(&row).Error; err != nil {
			return inUse(e.kind, e.name, err)
		}
	}
	return a.done(e)
}

//nolint:gosec // G101: a statement, no credential
const controllerOfToken = `
	select c.name, c.permissions from bz_controller_tokens t join bz_controllers c on c.name = t.controller where t.token_hash = ?`

// controllerByToken returns whose token has the SHA-256; false when it is nobody's.
func controllerByToken(tx *gorm.DB, hash []byte) (app.Controller, bool, error) {
	var row controllerRow
	res := tx.Raw(controllerOfToken, hash).Scan(&row)
	return app.Controller{Name: row.Name, Permissions: row.Permissions}, res.RowsAffected > 0, res.Error
}
