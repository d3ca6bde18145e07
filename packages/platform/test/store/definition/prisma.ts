export * from './generated/client.js';
