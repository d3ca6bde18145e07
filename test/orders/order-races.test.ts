import { testRaces } from './order-races.js';

testRaces(3);
