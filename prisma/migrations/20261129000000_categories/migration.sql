-- Names for the numbers that animals have as their category. The numbers are the store's to choose, so no sequence draws
-- them, and no foreign key refers to this table: an animal may be of a category without a name.
CREATE TABLE "categories" (
    "id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,

    CONSTRAINT "categories_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "categories_id_bounds" CHECK ("id" BETWEEN 1 AND 9007199254740991),
    CONSTRAINT "categories_name_length" CHECK (char_length("name") BETWEEN 1 AND 200),
    -- Every character with the Unicode property White_Space
    CONSTRAINT "categories_name_not_blank" CHECK (btrim("name", U&'\0009\000A\000B\000C\000D\0020\0085\00A0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200A\2028\2029\202F\205F\3000') <> '')
);
