/**
 * The store that the tests of the platform call. They take it from this file alone, so that a store of something else can
 * keep the animals for its tests: see docs/your-own.md.
 */
export { order } from '../../src/orders/schema.js';
export { newPet, type Pet, pet } from '../../src/pets/schema.js';
export { createPetStore, type PetStore } from '../../src/pets/store.js';
export { appRouter, resources } from '../../src/router.js';
