CREATE TYPE "pet_status" AS ENUM ('available', 'pending', 'sold');

-- Ids are the database's alone: GENERATED ALWAYS refuses one that is typed in, so that no insert by hand can
-- stand in the way of the sequence. The bounds are those of an integer that JSON and JavaScript carry exactly.
CREATE TABLE "pets" (
    "id" BIGINT GENERATED ALWAYS AS IDENTITY (MAXVALUE 9007199254740991),
    "name" TEXT NOT NULL,
    "category_id" BIGINT NOT NULL,
    "status" "pet_status" NOT NULL DEFAULT 'available',

    CONSTRAINT "pets_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "pets_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "pets_name_length" CHECK (char_length("name") BETWEEN 1 AND 200),
    -- Every character with the Unicode property White_Space
    CONSTRAINT "pets_name_not_blank" CHECK (btrim("name", U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000') <> ''),
    CONSTRAINT "pets_category_id_bounds" CHECK ("category_id" BETWEEN -9007199254740991 AND 9007199254740991)
);

CREATE INDEX "pets_status_id_idx" ON "pets"("status", "id");

INSERT INTO "insert_turns" VALUES ('pets');
