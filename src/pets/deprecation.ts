import type { Deprecation } from '../deprecation.js';

/** getPet is replaced by listPets with its status filter. */
export const getPetDeprecation: Deprecation = {
  since: new Date('2025-12-05T00:00:00Z'),
  removal: new Date('2030-12-05T00:00:00Z'),
  successor: '/pets',
};
