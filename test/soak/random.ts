/** Both bounds are included. */
export function randomInteger(min: number, max: number): number {
  return min + Math.floor(Math.random() * (max - min + 1));
}

export function pick<T>(items: readonly T[]): T {
  return items[randomInteger(0, items.length - 1)] as T;
}
