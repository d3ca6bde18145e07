-- A small catalogue to begin with.
INSERT INTO "categories" ("id", "name") VALUES
    (1, 'Dogs'), (2, 'Cats'), (3, 'Birds'), (4, 'Fish'), (5, 'Small mammals'), (6, 'Reptiles')
ON CONFLICT DO NOTHING;

INSERT INTO "pets" ("name", "category_id", "status") VALUES
    ('Bella, golden retriever, 10 weeks', 1, 'available'),
    ('Miso, Siamese, 4 months', 2, 'available'),
    ('Captain, African grey parrot, 6 years', 3, 'pending'),
    ('Neon tetras, school of ten', 4, 'available'),
    ('Clover and Thistle, bonded pair of lop-eared rabbits', 5, 'available'),
    ('Otto, dachshund, 5 months', 1, 'sold'),
    ('Saffron, bearded dragon, 2 years', 6, 'available'),
    ('Pepper, domestic shorthair, 3 years', 2, 'available'),
    ('Kiwi and Mango, budgerigars, 8 months', 3, 'available'),
    ('Truffle, guinea pig, 6 months', 5, 'pending'),
    ('Marlin, clownfish', 4, 'available'),
    ('Luna, border collie, 12 weeks', 1, 'pending'),
    ('Biscuit, Syrian hamster, 9 weeks', 5, 'available'),
    ('Ziggy, leopard gecko, 1 year', 6, 'sold'),
    ('Willow, Maine Coon, 5 months', 2, 'pending'),
    ('Figaro, canary, 1 year', 3, 'available'),
    ('Duke, Labrador mix, 4 years', 1, 'available'),
    ('Shelly, Hermann''s tortoise, 7 years', 6, 'available'),
    ('Pearl, veiltail betta', 4, 'sold'),
    ('Nougat, chinchilla, 1 year', 5, 'available'),
    ('Simba, orange tabby, 14 weeks', 2, 'available'),
    ('Hazel, cockatiel, 2 years', 3, 'available'),
    ('Rosie, beagle, 11 weeks', 1, 'available'),
    ('Jasper, corn snake, 18 months', 6, 'available');

INSERT INTO "orders" ("pet_id", "status", "created_at")
SELECT "pets"."id", "sample"."status"::"order_status", CURRENT_TIMESTAMP - "sample"."age"
FROM (VALUES
    ('Otto, dachshund, 5 months', 'delivered', INTERVAL '12 days'),
    ('Pearl, veiltail betta', 'delivered', INTERVAL '9 days'),
    ('Ziggy, leopard gecko, 1 year', 'delivered', INTERVAL '6 days'),
    ('Captain, African grey parrot, 6 years', 'approved', INTERVAL '2 days'),
    ('Luna, border collie, 12 weeks', 'approved', INTERVAL '30 hours'),
    ('Truffle, guinea pig, 6 months', 'placed', INTERVAL '5 hours'),
    ('Willow, Maine Coon, 5 months', 'placed', INTERVAL '20 minutes'),
    ('Neon tetras, school of ten', 'cancelled', INTERVAL '4 minutes')
) AS "sample" ("name", "status", "age")
JOIN "pets" ON "pets"."name" = "sample"."name"
ORDER BY "sample"."age" DESC;
