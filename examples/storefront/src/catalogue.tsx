import type { NewPet, Pet, PetStatus } from '@animal-store/client';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { useAnnounce } from './announcer.js';
import { useChoiceInAddress } from './choice-in-address.js';
import { useTRPC } from './connection.js';
import { KindIcon } from './illustration.js';
import { moveFocusOnRemoval } from './move-focus.js';
import { Notice } from './notice.js';
import { CardSkeleton, PetCard } from './pet-card.js';
import { StatusFilter } from './status-filter.js';
import { STATUS_LABELS, STATUSES } from './vocabulary.js';

/** Fills whole rows of two, four and five cards. */
const PAGE_SIZE = 20;

export interface CatalogueProps {
  /** The animal that is being saved */
  readonly saving: NewPet | undefined;
  /** Animals added in this tab, newest first; they are shown first rather than at the end */
  readonly added: readonly Pet[];
}

export function Catalogue(props: CatalogueProps) {
  const [status, setStatus] = useChoiceInAddress('status', STATUSES);
  return (
    <section className="catalogue" aria-labelledby="catalogue-heading">
      <header className="catalogue-head">
        <h2 id="catalogue-heading" tabIndex={-1}>
          Catalogue
        </h2>
        <StatusFilter status={status} onChange={setStatus} />
      </header>
      <PetList key={status ?? ''} status={status} onShowAll={() => setStatus(undefined)} {...props} />
    </section>
  );
}

interface PetListProps extends CatalogueProps {
  readonly status: PetStatus | undefined;
  readonly onShowAll: () => void;
}

/** The animals of one status, or all. Loads the next page when the user scrolls near the end. */
function PetList({ status, saving, added, onShowAll }: PetListProps) {
  const query = usePetPages(status);
  const queryClient = useQueryClient();
  const error = useLastError(query);
  const announce = useAnnounce();
  const matches = (pet: NewPet) => status === undefined || pet.status === status;
  const front = added.filter(matches);
  const frontIds = new Set(front.map(({ id }) => id));
  const loaded = query.data?.pages.flat() ?? [];
  const pets = loaded.filter(({ id }) => !frontIds.has(id));
  const count = pets.length + front.length;
  const isSaving = saving !== undefined && matches(saving);
  const isComplete = query.isSuccess && !query.hasNextPage;

  const progress = query.isSuccess
    ? `${isComplete ? 'All shown' : 'Shown so far'}: ${countAnimals(loaded.length)}`
    : '';
  useEffect(() => {
    if (progress !== '') announce(progress);
  }, [announce, progress]);

  const loadMore = () => void query.fetchNextPage();
  // Without a first page, the key has probably not been read either.
  const retryAll = () => queryClient.refetchQueries({ predicate: ({ state }) => state.status === 'error' });
  const retry = () => (query.isFetchNextPageError ? loadMore() : void retryAll());
  if (isComplete && count === 0 && !isSaving) return <Empty status={status} onShowAll={onShowAll} />;
  return (
    <>
      <ul className="cards" aria-busy={query.isFetching}>
        {isSaving && <PetCard key="saving" pet={saving} />}
        {front.map((pet) => (
          <PetCard key={pet.id} pet={pet} isNew />
        ))}
        {pets.map((pet) => (
          <PetCard key={pet.id} pet={pet} />
        ))}
        {query.isFetching && error === null && <Skeletons count={query.isFetchingNextPage ? 4 : 8} />}
      </ul>
      {error !== null && (
        <Notice error={error} since={query.errorUpdatedAt} isRetrying={query.isFetching} onRetry={retry} />
      )}
      {query.hasNextPage && error === null && (
        <LoadMore
          pages={query.data?.pages.length ?? 0}
          isLoading={query.isFetchingNextPage}
          onLoad={loadMore}
        />
      )}
      {isComplete && <p className="catalogue-end">That is everyone: {countAnimals(count)}.</p>}
    </>
  );
}

function usePetPages(status: PetStatus | undefined) {
  const trpc = useTRPC();
  return useInfiniteQuery(
    trpc.listPets.infiniteQueryOptions(
      { limit: PAGE_SIZE, ...(status === undefined ? {} : { status }) },
      // A page that is not full is the last one. A full one may be followed by an empty one.
      { getNextPageParam: (page) => (page.length < PAGE_SIZE ? undefined : page.at(-1)?.id) },
    ),
  );
}

/** The latest error until the query succeeds; while the query is retried, it has no error itself. */
export function useLastError({ error, isSuccess }: { error: unknown; isSuccess: boolean }): unknown {
  const [lastError, setLastError] = useState<unknown>(null);
  if (error !== null && error !== lastError) setLastError(error);
  else if (isSuccess && lastError !== null) setLastError(null);
  return error ?? lastError;
}

interface LoadMoreProps {
  /** How many pages are shown; the end is observed again after each */
  readonly pages: number;
  readonly isLoading: boolean;
  readonly onLoad: () => void;
}

/** Marks the end of what is loaded. Scrolling near it loads the next page, and so does its button. */
export function LoadMore({ pages, isLoading, onLoad }: LoadMoreProps) {
  const end = useRef<HTMLDivElement>(null);
  const load = () => {
    if (!isLoading) onLoad();
  };
  const loadOnScroll = useEffectEvent(load);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new observer reports an end that is still in view
  useEffect(() => {
    if (end.current === null) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && loadOnScroll(),
      {
        rootMargin: '600px',
      },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [pages]);
  return (
    <div ref={end} className="load-more">
      <button
        ref={moveFocusOnRemoval}
        type="button"
        className="button quiet"
        onClick={load}
        aria-disabled={isLoading}
      >
        {isLoading ? 'Loading more…' : 'Load more'}
      </button>
    </div>
  );
}

function countAnimals(count: number): string {
  return count === 1 ? '1 animal' : `${count} animals`;
}

function Skeletons({ count }: { count: number }) {
  // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
  return Array.from({ length: count }, (_, index) => <CardSkeleton key={`skeleton-${index}`} />);
}

function Empty({ status, onShowAll }: Pick<PetListProps, 'status' | 'onShowAll'>) {
  return (
    <div className="empty">
      <KindIcon kind="paw" />
      {status === undefined ? (
        <>
          <p className="empty-title">Nobody lives here yet</p>
          <p>The first animal that you add moves in right here.</p>
        </>
      ) : (
        <>
          <p className="empty-title">No animal is {STATUS_LABELS[status].toLowerCase()}</p>
          <button ref={moveFocusOnRemoval} type="button" className="button quiet" onClick={onShowAll}>
            Show all animals
          </button>
        </>
      )}
    </div>
  );
}
