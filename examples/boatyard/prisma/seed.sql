INSERT INTO "boats" ("name", "berth", "status")
SELECT 'Boat ' || n, 1 + n % 4, CASE WHEN n % 5 = 0 THEN 'sold'::"boat_status" ELSE 'for_sale' END
FROM generate_series(1, 24) AS n;

INSERT INTO "moves" ("boat_id", "place") SELECT 1, 'quay ' || n FROM generate_series(1, 12) AS n;
