import { type Client, createClient, type Pet } from '@animal-store/client';
import { QueryCache, QueryClient, QueryClientProvider, useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { AddPet } from './add-pet.js';
import { useAnnounce } from './announcer.js';
import { Brand } from './brand.js';
import { Catalogue } from './catalogue.js';
import { Gauge } from './gauge.js';
import { describeTrouble } from './trouble.js';
import { TRPCProvider, useTRPC } from './trpc.js';

export interface ShopProps {
  readonly apiKey: string;
  /** The service does not know the key. */
  readonly onRefused: () => void;
  readonly onLeave: () => void;
}

/** The shop as one key sees it: client and cache live and end with the key. */
export function Shop({ apiKey, onRefused, onLeave }: ShopProps) {
  const [client] = useState(() => openClient(apiKey));
  const [queryClient] = useState(() => openQueryClient(onRefused));
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={client} queryClient={queryClient}>
        <a className="skip-link" href="#catalogue-heading">
          Skip to the catalogue
        </a>
        <header className="masthead">
          <Brand />
          <Gauge limits={client.limits} />
          <button type="button" className="button quiet small" onClick={onLeave}>
            Change key
          </button>
        </header>
        <Floor />
      </TRPCProvider>
    </QueryClientProvider>
  );
}

/** Catalogue and form, and what goes from one to the other. */
function Floor() {
  const trpc = useTRPC();
  const announce = useAnnounce();
  const [added, setAdded] = useState<readonly Pet[]>([]);
  const adding = useMutation(
    trpc.createPet.mutationOptions({
      onMutate: ({ name }) => announce(`Saving ${name}`),
      onSuccess: (pet) => {
        setAdded((before) => [pet, ...before]);
        announce(`${pet.name} is in the catalogue`);
      },
    }),
  );
  return (
    <main className="floor">
      <AddPet isSaving={adding.isPending} onSubmit={adding.mutateAsync} />
      <Catalogue saving={adding.isPending ? adding.variables : undefined} added={added} />
    </main>
  );
}

/** Gives up early on a call: the page says what is wrong, counts down and goes on by itself. */
function openClient(apiKey: string): Client {
  return createClient({ baseUrl: location.origin, apiKey, retry: { attempts: 3, totalSeconds: 10 } });
}

function openQueryClient(onRefused: () => void): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => describeTrouble(error).kind === 'key' && onRefused(),
    }),
    defaultOptions: {
      // The client repeats what is worth repeating, and being offline is one more way not to reach the service.
      // Pages are not read again while they are kept: each of them costs a request.
      queries: { retry: false, networkMode: 'always', staleTime: Number.POSITIVE_INFINITY },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
}
