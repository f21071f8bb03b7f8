// Samples of any law with a symmetric density that decreases in |x|.
//
// Computes: out[i] = scale * Z where element first + i of the stream decides Z.
// Method: ziggurat over the compiled law. One word gives layer, sign and position; the position
//   times the width of the strip is accepted when its high bits are below the strip's threshold
//   (99.8 % of the words with 2048 strips, 99.5 % with 1024), while the next words are computed.
//   What is left is finished sixteen elements at a time, which share one wide ChaCha call: wedges
//   against the log density table, the tail by inversion in -log of the survival function, which
//   does not end where a 53-bit uniform would.
// Error: none in the choice of strip; positions are odd multiples of 2^-53 (2^-22 for float32)
//   of the width; wedge probabilities are right to about 1e-13, tail quantiles to a few ulp.
// Determinism: no libm, no FMA, a fixed order of operations: the same bits at every level and from
//   the NumPy twin (psinoise/reference/sample.py).
// References: Marsaglia and Tsang, J. Stat. Softw. 5(8), 2000; Doornik (2005) on independent bits.
#include "base/look_up.hpp"
#include "base/masks.hpp"
#include "base/vector.hpp"
#include "kernels/level_kernels.hpp"
#include "kernels/settle.hpp"
#include "kernels/variates.hpp"
#include "kernels/ziggurat_words.hpp"
#include "math/panels.hpp"
#include "random/stream.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

// A point of the tail beyond strip 0: its depth is that of the edge plus an exponential variate.
double tail_point(const LawTable& law, double edge_depth, std::uint64_t word,
                  FurtherWords& further) {
  double depth = edge_depth + exponential_variate(word, further);
  if (!(depth < law.tail_quantile.limit)) {
    depth = law.tail_quantile.limit * (1.0 - 0x1p-53);
  }
  return tail_quantile(law, depth);
}

// Strip 0 when its threshold does not decide: the rest of the rectangle, or the tail.
template <typename Format>
inline typename Format::Real base_strip(const LawTable& law, typename Format::Word word,
                                        std::uint64_t test, FurtherWords& further) {
  using Real = typename Format::Real;
  const auto& ziggurat = Format::ziggurat(law);
  if (magnitude<Format>(word, ziggurat.entries[0]) < ziggurat.base_edge) {
    return candidate<Format, Real>(word, ziggurat.entries[0]);
  }
  const double tail = tail_point(law, ziggurat.tail_depth, test, further);
  return with_sign<Format>(static_cast<Real>(tail), word);
}

// A uniform height inside strip `layer`, which the density must exceed.
template <typename Format>
inline double wedge_height(const LawTable& law, std::size_t layer, std::uint64_t test) {
  const double* heights = Format::ziggurat(law).heights;
  return heights[layer] + position<Float64, double>(test) * (heights[layer + 1] - heights[layer]);
}

// New words until one is accepted.
template <typename Format>
typename Format::Real retry(const LawTable& law, FurtherWords& further) {
  using Real = typename Format::Real;
  using Word = typename Format::Word;
  for (;;) {
    const Word word = Format::from_stream(further.next());
    const Word layer = layer_of<Format>(word);
    const Word entry = Format::ziggurat(law).entries[layer];
    if (!undecided<Format>(word, entry)) return candidate<Format, Real>(word, entry);
    const std::uint64_t test = further.next();
    if (layer == 0) return base_strip<Format>(law, word, test, further);
    const double x = magnitude<Format>(word, entry);
    if (wedge_height<Format>(law, layer, test) < exponential(panel_value(law.log_density, x))) {
      return candidate<Format, Real>(word, entry);
    }
  }
}

// The words k = 0, 1, ... of `FurtherWords` of sixteen elements at once.
inline void further_words(const std::uint32_t group[kGroupWords], int k,
                          std::uint64_t out[kLanes]) {
  const std::uint32_t* row = group + 2 * kLanes * k;
  for (int j = 0; j < kLanes; ++j) {
    out[j] = row[j] | static_cast<std::uint64_t>(row[kLanes + j]) << 32;
  }
}

// Settles up to sixteen pending elements with one wide ChaCha call. The first trial of all, and the
// first word of the second, are computed without branches, since half of the wedge tests fail: what
// neither settles, one element in two hundred, goes on alone. Element `first` belongs to out[0].
template <typename Format>
void finish_batch(const LawTable& law, const std::uint32_t key[8], std::uint64_t first,
                  typename Format::Real scale, const typename Format::Word* offset,
                  const typename Format::Word* pending, int lanes, typename Format::Real* out) {
  using Real = typename Format::Real;
  using Word = typename Format::Word;
  const auto& ziggurat = Format::ziggurat(law);
  std::uint64_t counters[kLanes] = {};
  Word words[kLanes] = {};
  for (int j = 0; j < lanes; ++j) {
    counters[j] = first + offset[j];
    words[j] = pending[j];
  }
  alignas(64) std::uint32_t group[kGroupWords];
  chacha_blocks<kSampleRounds>(key, counters, 1, group);
  std::uint64_t test[kLanes];
  std::uint64_t second[kLanes];
  further_words(group, 0, test);
  further_words(group, 1, second);

  double density[kLanes];
  double height[kLanes];
  Real sample[kLanes];
  Real other[kLanes];
  bool decided[kLanes];
  std::int64_t row[kLanes];
  double u[kLanes];
  double x[kLanes];
  // In several loops, each of which the compiler turns into vectors.
  for (int j = 0; j < kLanes; ++j) {
    const Word layer = layer_of<Format>(words[j]);
    const Word entry = ziggurat.entries[layer];
    // Strip 0 may lie beyond the table; it is settled on its own.
    const double found = magnitude<Format>(words[j], entry);
    x[j] = layer == 0 ? 0.0 : found;
    sample[j] = candidate<Format, Real>(words[j], entry) * scale;
  }
  for (int j = 0; j < kLanes; ++j) {
    const PanelPosition at = locate(law.log_density, x[j], 0.0);
    row[j] = at.row;
    u[j] = at.u;
  }
  for (int j = 0; j < kLanes; ++j) {
    height[j] = wedge_height<Format>(law, layer_of<Format>(words[j]), test[j]);
  }
  for (int j = 0; j < kLanes; ++j) {
    const Word next = Format::from_stream(second[j]);
    const Word entry = ziggurat.entries[layer_of<Format>(next)];
    other[j] = candidate<Format, Real>(next, entry) * scale;
    decided[j] = !undecided<Format>(next, entry);
  }
  for (int j = 0; law.log_density.split_count > 0 && j < kLanes; ++j) {
    const PanelPosition at = cross(law.log_density, PanelPosition{row[j], u[j]});
    row[j] = at.row;
    u[j] = at.u;
  }
  double head[kLanes];
  panel_parts(law.log_density, row, u, kLanes, head, density);
  for (int j = 0; j < kLanes; ++j) density[j] = exponential(head[j] + density[j]);
  unsigned open = 0;
  for (int j = 0; j < kLanes; ++j) {
    const bool accepted = height[j] < density[j];
    // In integers: a branch would be mispredicted every other time.
    const Word both = bit_cast<Word>(sample[j]) ^ bit_cast<Word>(other[j]);
    sample[j] = bit_cast<Real>(
        static_cast<Word>(bit_cast<Word>(other[j]) ^ (both & (Word{0} - Word{accepted}))));
    const bool settled = (accepted | decided[j]) & (layer_of<Format>(words[j]) != 0);
    open |= (settled ? 0u : 1u) << j;
  }
  for (int j = 0; j < lanes; ++j) out[offset[j]] = sample[j];
  for (open &= (2u << (lanes - 1)) - 1u; open != 0; open &= open - 1u) {
    const int j = __builtin_ctz(open);
    FurtherWords further(key, counters[j], group, j);
    const std::uint64_t test_word = further.next();
    const bool base = layer_of<Format>(words[j]) == 0;
    out[offset[j]] = (base ? base_strip<Format>(law, words[j], test_word, further)
                           : retry<Format>(law, further)) *
                     scale;
  }
}

template <typename Format>
struct Sampler {
  using Word = typename Format::Word;
  using Real = typename Format::Real;

  // Turns one word into a sample; true if it does not decide.
  bool settle_one(Word word, std::size_t offset) const {
    const Word entry = entries[layer_of<Format>(word)];
    out[offset] = candidate<Format, Real>(word, entry) * scale;
    return undecided<Format>(word, entry);
  }

  // The same for a vector of words, with a bit for each.
  unsigned settle(const Word* from, std::size_t offset) const {
    using Reals = Vector<Real>;
    Vector<Word> word;
    __builtin_memcpy(&word, from, sizeof(word));
    const Vector<Word> entry = look_up<Word>(entries, from, Format::kLayers - 1u);
    const Reals sample = candidate<Format, Reals>(word, entry) * scale;
    __builtin_memcpy(out + offset, &sample, sizeof(sample));
    return at_least(word, entry << Format::kThresholdShift);
  }

  void finish(const Pending<Word>& pending) const {
    for (std::size_t start = 0; start < pending.count; start += kLanes) {
      const std::size_t left = pending.count - start;
      finish_batch<Format>(law, key, first, scale, pending.offset + start, pending.word + start,
                           left < kLanes ? static_cast<int>(left) : kLanes, out);
    }
  }

  const LawTable& law;
  const std::uint32_t* key;
  std::uint64_t first;
  Real scale;
  Real* out;
  const Word* entries = Format::ziggurat(law).entries;
};

template <typename Format>
void sample(const LawTable& law, const std::uint32_t key[8], std::uint64_t first, std::size_t count,
            typename Format::Real scale, typename Format::Real* out) {
  settle_words<typename Format::Word>(key, first, count,
                                      Sampler<Format>{law, key, first, scale, out});
}

}  // namespace

void sample_float64(const LawTable& law, const std::uint32_t key[8], std::uint64_t first,
                    std::size_t count, double scale, double* out) {
  sample<Float64>(law, key, first, count, scale, out);
}

void sample_float32(const LawTable& law, const std::uint32_t key[8], std::uint64_t first,
                    std::size_t count, float scale, float* out) {
  sample<Float32>(law, key, first, count, scale, out);
}

}  // namespace psinoise::PSINOISE_LEVEL
