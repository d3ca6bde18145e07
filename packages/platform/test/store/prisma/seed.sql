INSERT INTO "parcels" ("label", "shelf", "status")
SELECT 'Parcel ' || n, 1 + n % 4, CASE WHEN n % 5 = 0 THEN 'collected'::"parcel_status" ELSE 'waiting' END
FROM generate_series(1, 24) AS n;

INSERT INTO "scans" ("parcel_id", "place") SELECT 1, 'door ' || n FROM generate_series(1, 12) AS n;
