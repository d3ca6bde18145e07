/** What several callers wait for, taken in turns: one of each, then the next of each. Every step takes the same time. */
export class Turns<T> {
  readonly #callers = new Map<string, Line<T>>();
  /** Those with something in line, in the order of their turns */
  readonly #next = new Line<string>();
  #size = 0;

  /** How much waits, of all callers */
  get size(): number {
    return this.#size;
  }

  push(caller: string, item: T): void {
    const line = this.#callers.get(caller) ?? this.#add(caller);
    line.push(item);
    this.#size += 1;
  }

  shift(): T | undefined {
    const caller = this.#next.shift();
    const line = caller === undefined ? undefined : this.#callers.get(caller);
    if (caller === undefined || line === undefined) return undefined;
    const item = line.shift();
    this.#size -= 1;
    if (line.isEmpty) this.#callers.delete(caller);
    else this.#next.push(caller);
    return item;
  }

  #add(caller: string): Line<T> {
    const line = new Line<T>();
    this.#callers.set(caller, line);
    this.#next.push(caller);
    return line;
  }
}

interface Place<T> {
  readonly item: T;
  next: Place<T> | undefined;
}

/** First in, first out. Linked, because the first elements of an array cannot be removed without moving the others. */
class Line<T> {
  #first: Place<T> | undefined;
  #last: Place<T> | undefined;

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  push(item: T): void {
    const place: Place<T> = { item, next: undefined };
    if (this.#last === undefined) this.#first = place;
    else this.#last.next = place;
    this.#last = place;
  }

  shift(): T | undefined {
    const place = this.#first;
    if (place === undefined) return undefined;
    this.#first = place.next;
    if (this.#first === undefined) this.#last = undefined;
    // Otherwise a place that has reached the old generation would keep all that follow it alive until that is collected.
    place.next = undefined;
    return place.item;
  }
}
