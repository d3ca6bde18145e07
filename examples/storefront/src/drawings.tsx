import type { ReactNode } from 'react';
import type { Kind } from './vocabulary.js';

const MIRROR = 'matrix(-1 0 0 1 320 0)';

/** Draws its children on the left, and mirrored on the right. */
function Both({ children }: { children: ReactNode }) {
  return (
    <>
      {children}
      <g transform={MIRROR}>{children}</g>
    </>
  );
}

const dog = (
  <>
    <path className="shade" d="M84 200 C90 160 118 140 160 140 C202 140 230 160 236 200 Z" />
    <path
      className="coat"
      d="M160 36 C190 36 210 58 210 92 C210 130 190 156 160 156 C130 156 110 130 110 92 C110 58 130 36 160 36 Z"
    />
    <Both>
      <path
        className="shade"
        d="M136 42 C112 34 86 54 82 92 C80 116 88 130 100 128 C114 126 116 108 119 88 C122 70 128 54 136 42 Z"
      />
    </Both>
    <path
      className="pale"
      d="M160 60 C168 60 170 76 173 90 C190 98 194 112 190 126 C186 142 176 150 160 150 C144 150 134 142 130 126 C126 112 130 98 147 90 C150 76 152 60 160 60 Z"
    />
    <Both>
      <circle className="line" cx="135" cy="88" r="5.5" />
    </Both>
    <path
      className="line"
      d="M148 104 C148 99 153 97 160 97 C167 97 172 99 172 104 C172 110 165 115 160 115 C155 115 148 110 148 104 Z"
    />
    <path className="stroke" d="M160 115 V123 M142 124 C146 132 156 132 160 123 C164 132 174 132 178 124" />
    <path className="collar" d="M118 158 C140 172 180 172 202 158 L206 170 C182 186 138 186 114 170 Z" />
  </>
);

const cat = (
  <>
    <path className="stroke tail" d="M220 196 C262 194 274 160 252 138" />
    <path className="coat" d="M100 200 C102 162 124 142 160 142 C196 142 218 162 220 200 Z" />
    <Both>
      <path className="coat" d="M104 104 C100 78 101 54 106 40 C108 34 114 33 118 37 L152 66 Z" />
      <path className="pale" d="M111 78 C110 66 111 58 113 52 L132 69 Z" />
    </Both>
    <path
      className="coat"
      d="M160 56 C192 56 216 76 216 106 C216 136 192 156 160 156 C128 156 104 136 104 106 C104 76 128 56 160 56 Z"
    />
    <path
      className="shade"
      d="M154 56 H166 L162 82 C161 86 159 86 158 82 Z M136 60 L146 58 L147 74 C147 78 144 78 143 75 Z M184 60 L174 58 L173 74 C173 78 176 78 177 75 Z"
    />
    <path
      className="pale"
      d="M160 114 C176 114 186 124 186 134 C186 146 174 152 160 152 C146 152 134 146 134 134 C134 124 144 114 160 114 Z"
    />
    <Both>
      <ellipse className="line" cx="134" cy="104" rx="5" ry="7" />
      <path className="stroke thin" d="M132 130 L104 124 M132 136 L106 140" />
    </Both>
    <path
      className="collar"
      d="M153 118 H167 C169 118 169 121 168 122 L162 127 C161 128 159 128 158 127 L152 122 C151 121 151 118 153 118 Z"
    />
    <path className="stroke" d="M160 128 V132 M148 132 C150 139 158 139 160 132 C162 139 170 139 172 132" />
  </>
);

const bird = (
  <>
    <path className="stroke branch" d="M20 176 C100 184 200 168 300 178" />
    <path className="shade" d="M112 138 L52 168 C48 170 49 175 53 175 L128 170 Z" />
    <path
      className="coat"
      d="M100 140 C100 108 128 92 150 78 C156 50 180 38 204 44 C228 50 238 74 232 96 C228 140 196 174 152 174 C120 174 100 162 100 140 Z"
    />
    <path
      className="pale"
      d="M232 96 C228 140 196 174 152 174 C150 174 148 174 146 174 C186 160 206 130 210 100 C216 106 226 104 232 96 Z"
    />
    <path
      className="shade"
      d="M112 150 C112 118 142 104 176 106 C178 138 154 160 120 160 C114 160 112 156 112 150 Z"
    />
    <path className="stroke thin" d="M130 148 C146 146 158 138 164 126" />
    <path className="collar" d="M233 70 L258 78 C261 79 261 83 258 84 L232 92 Z" />
    <circle className="line" cx="209" cy="70" r="5.5" />
    <path className="stroke" d="M158 174 V184 M176 171 V182" />
  </>
);

const fish = (
  <>
    <path
      className="stroke wave"
      d="M14 178 q16 -10 32 0 t32 0 t32 0 t32 0 t32 0 t32 0 t32 0 t32 0 t32 0 t32 0"
    />
    <circle className="bubble" cx="58" cy="66" r="7" />
    <circle className="bubble" cx="42" cy="44" r="4.5" />
    <circle className="bubble" cx="62" cy="28" r="3" />
    <path
      className="shade"
      d="M216 106 C232 78 254 66 266 66 C272 66 273 71 270 76 C262 92 262 120 270 136 C273 141 272 146 266 146 C254 146 232 134 216 106 Z"
    />
    <path className="shade" d="M128 64 C146 36 184 38 204 52 C196 58 194 70 196 80 Z" />
    <path className="shade" d="M150 146 C156 164 176 170 190 164 C186 156 186 148 188 138 Z" />
    <path
      className="coat"
      d="M78 108 C92 74 128 56 164 60 C196 64 216 86 226 106 C216 126 196 148 164 152 C128 156 92 140 78 108 Z"
    />
    <path
      className="pale"
      d="M142 60 C152 88 152 124 142 152 C132 151 122 148 114 143 C126 120 126 92 114 71 C122 66 132 62 142 60 Z"
    />
    <path className="pale" d="M190 70 C196 94 196 118 190 142 L204 133 C208 116 208 96 204 79 Z" />
    <path className="shade" d="M152 112 C164 104 180 108 186 118 C176 130 160 130 152 124 Z" />
    <circle className="line" cx="104" cy="98" r="5.5" />
    <path className="stroke thin" d="M82 118 C88 122 94 122 98 119" />
  </>
);

const rabbit = (
  <>
    <path className="shade" d="M92 200 C96 166 122 148 160 148 C198 148 224 166 228 200 Z" />
    <Both>
      <path className="coat" d="M130 92 C112 62 106 22 120 10 C138 0 154 40 156 78 Z" />
      <path className="pale" d="M134 78 C122 56 118 30 124 24 C132 20 144 50 146 74 Z" />
    </Both>
    <path
      className="coat"
      d="M160 66 C190 66 210 88 210 116 C210 142 190 160 160 160 C130 160 110 142 110 116 C110 88 130 66 160 66 Z"
    />
    <path
      className="pale"
      d="M160 116 C176 116 188 124 188 138 C188 150 176 157 160 157 C144 157 132 150 132 138 C132 124 144 116 160 116 Z"
    />
    <Both>
      <circle className="line" cx="136" cy="108" r="5.5" />
      <path className="stroke thin" d="M134 134 L108 130 M134 140 L110 146" />
    </Both>
    <path
      className="collar"
      d="M154 120 H166 C169 120 169 123 167 125 L162 129 C161 130 159 130 158 129 L153 125 C151 123 151 120 154 120 Z"
    />
    <path className="stroke" d="M160 130 V136 M150 137 C153 142 158 141 160 136 C162 141 167 142 170 137" />
  </>
);

const tortoise = (
  <>
    <path
      className="shade"
      d="M96 176 C92 158 102 148 116 148 C130 148 136 160 134 176 Z M190 176 C188 160 194 148 208 148 C222 148 230 158 228 176 Z"
    />
    <path className="shade" d="M92 150 C80 148 68 154 62 164 C74 168 86 164 96 158 Z" />
    <path
      className="shade"
      d="M222 142 C228 116 250 98 270 106 C290 114 288 142 268 146 C256 148 248 152 240 160 Z"
    />
    <path className="coat" d="M84 154 C84 102 116 66 162 66 C208 66 242 102 242 154 Z" />
    <path
      className="pale"
      d="M76 152 C76 147 80 145 84 145 H242 C248 145 250 149 249 154 C248 160 242 163 236 163 H90 C82 163 76 158 76 152 Z"
    />
    <path className="scute" d="M140 90 H186 L200 116 L186 138 H140 L126 116 Z" />
    <path
      className="stroke thin"
      d="M126 116 L92 120 M200 116 L236 120 M140 90 L128 76 M186 90 L200 76 M140 138 L134 145 M186 138 L192 145"
    />
    <circle className="line" cx="266" cy="122" r="4.5" />
    <path className="stroke thin" d="M284 130 C278 134 272 135 266 134" />
  </>
);

const paw = (
  <>
    <path
      className="coat"
      d="M160 104 C186 104 208 132 208 154 C208 170 196 178 182 176 C172 174 168 172 160 172 C152 172 148 174 138 176 C124 178 112 170 112 154 C112 132 134 104 160 104 Z"
    />
    <Both>
      <ellipse className="coat" cx="140" cy="76" rx="16" ry="23" transform="rotate(-8 140 76)" />
      <ellipse className="coat" cx="102" cy="106" rx="14" ry="20" transform="rotate(-28 102 106)" />
    </Both>
  </>
);

/** The animals in a frame of 320 by 200, each standing on its lower edge; the classes are coats and lines. */
export const DRAWINGS: Record<Kind, ReactNode> = { dog, cat, bird, fish, rabbit, tortoise, paw };
