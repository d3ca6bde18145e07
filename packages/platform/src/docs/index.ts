/** What tools may use of this room. */
export { describeService } from './service-description.js';
