-- A page of one category, alone and with a status
CREATE INDEX "pets_category_id_id_idx" ON "pets"("category_id", "id");
CREATE INDEX "pets_status_category_id_id_idx" ON "pets"("status", "category_id", "id");
