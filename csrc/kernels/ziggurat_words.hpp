// What the bits of one random word mean to the ziggurat.
//
// Computes: layer, sign and position of a word, the candidate that they make with the entry of a
//   strip, and whether the strip's threshold decides. All bits of a word are used, and none twice:
//     float64: position 63..12, sign 11, layer 10..0;
//     float32: position 31..11, sign 10, layer 9..0.
// Error: positions are exact; a candidate has the rounding of one multiplication.
#pragma once

#include "base/vector.hpp"
#include "kernels/tables.hpp"

namespace psinoise::PSINOISE_LEVEL {

// How a word is read, for each type of sample. The functions take single words and vectors of them.
struct Float64 : WideWords {
  static constexpr int kSignBit = 11;
  static constexpr int kPositionShift = 12;
  static constexpr int kThresholdShift = 32;
  static constexpr Word kKept = ~Word{0};
  static constexpr Word kLowest = kOne;
  static constexpr Real kCenter = 1.0 - 0x1p-53;
  static constexpr Word kLayers = kWideLayers;
  static const Ziggurat<Word>& ziggurat(const LawTable& law) { return law.wide; }
  static Word from_stream(std::uint64_t word) { return word; }
};

struct Float32 : NarrowWords {
  static constexpr int kSignBit = 10;
  static constexpr int kPositionShift = 9;
  static constexpr int kThresholdShift = 20;
  // The two lowest bits, which the shift fills with others, are 10: the middle of a cell of 2^-21.
  static constexpr Word kKept = ~Word{3};
  static constexpr Word kLowest = kOne | 2u;
  static constexpr Real kCenter = 1.0f;
  static constexpr Word kLayers = kNarrowLayers;
  static const Ziggurat<Word>& ziggurat(const LawTable& law) { return law.narrow; }
  static Word from_stream(std::uint64_t word) { return static_cast<Word>(word >> 32); }
};

template <typename Format>
inline typename Format::Word layer_of(typename Format::Word word) {
  return word & (Format::kLayers - 1u);
}

// (2 k + 1) 2^-53 (or 2^-22) for the high bits k of the word: strictly inside (0, 1), exact.
template <typename Format, typename Reals, typename Words>
inline Reals position(Words word) {
  return bit_cast<Reals>(((word >> Format::kPositionShift) & Format::kKept) | Format::kLowest) -
         Format::kCenter;
}

template <typename Format, typename Reals, typename Words>
inline Reals with_sign(Reals magnitude, Words word) {
  constexpr typename Format::Word sign = static_cast<typename Format::Word>(1) << Format::kSignBit;
  constexpr int shift = 8 * sizeof(typename Format::Word) - 1 - Format::kSignBit;
  return bit_cast<Reals>(bit_cast<Words>(magnitude) | ((word << shift) & (sign << shift)));
}

template <typename Format, typename Reals, typename Words>
inline Reals candidate(Words word, Words entry) {
  return with_sign<Format>(position<Format, Reals>(word) * bit_cast<Reals>(entry), word);
}

template <typename Format>
inline bool undecided(typename Format::Word word, typename Format::Word entry) {
  return word >= (entry << Format::kThresholdShift);
}

template <typename Format>
inline double magnitude(typename Format::Word word, typename Format::Word entry) {
  using Real = typename Format::Real;
  return static_cast<double>(position<Format, Real>(word)) *
         static_cast<double>(bit_cast<Real>(entry));
}

}  // namespace psinoise::PSINOISE_LEVEL
