// Variates that a few elements draw from their further words.
//
// Computes: an exponential variate -log(u), u uniform on (0, 1).
// Method: the binary exponent of u is counted bit by bit in as many words as it takes, its mantissa
//   comes from one more: no bit of depth is lost, and the variate does not end where -log(2^-53)
//   would.
// Error: that of the logarithm, below 2 ulp.
#pragma once

#include "math/elementary.hpp"
#include "random/stream.hpp"

namespace psinoise::PSINOISE_LEVEL {

inline double exponential_variate(std::uint64_t word, FurtherWords& further) {
  constexpr int deepest = 2880;  // beyond: 2^-2880, past the range of every table
  int zeros = 0;
  while (word == 0 && zeros < deepest) {
    zeros += 64;
    word = further.next();
  }
  if (word != 0) zeros += __builtin_clzll(word);
  const double mantissa = double_from((further.next() >> 12) | 0x3ff0000000000000u);
  const double halvings = static_cast<double>(zeros + 1);
  return halvings * kLog2Hi + (halvings * kLog2Lo - logarithm(mantissa));
}

}  // namespace psinoise::PSINOISE_LEVEL
