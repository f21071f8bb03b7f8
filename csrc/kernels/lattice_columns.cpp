// The columns of the alias method for integer weights.
//
// Computes: entries such that column c, taken with one of the equally likely positions below the
//   capacity, gives c for positions below its threshold and its alias for the others; over all
//   columns each integer comes weights[k] times, exactly.
// Method: one sweep with two pointers. A heavy column, with more than the capacity, fills the light
//   ones in order of their index until it is light itself and is filled by the next heavy one. No
//   memory but the entries, and time linear in their number.
// Error: none; integers only. weights add up to columns * capacity, so that no heavy column is left
//   when the light ones are used up, and none is wanting.
// References: Vose, IEEE Trans. Softw. Eng. 17(9), 1991; the sweep: Huebschle-Schneider and
//   Sanders, "Parallel weighted random sampling", ACM Trans. Math. Softw. 48(3), 2022.
#include "kernels/level_kernels.hpp"

namespace psinoise::PSINOISE_LEVEL {
namespace {

using Word = std::uint64_t;

class Columns {
 public:
  Columns(const Word* weights, std::size_t count, std::size_t columns, Word capacity, Word* entries)
      : weights_(weights), count_(count), columns_(columns), capacity_(capacity), out_(entries) {}

  void build() {
    std::size_t light = next_light(0);
    std::size_t heavy = next_heavy(0);
    Word left = heavy < columns_ ? weight(heavy) : 0;
    while (heavy < columns_) {
      if (left > capacity_) {
        set(light, weight(light), heavy);
        left -= capacity_ - weight(light);
        light = next_light(light + 1);
      } else {
        const std::size_t next = next_heavy(heavy + 1);
        set(heavy, left, next);
        if (next < columns_) left = weight(next) - (capacity_ - left);
        heavy = next;
      }
    }
    for (; light < columns_; light = next_light(light + 1)) set(light, capacity_, light);
  }

 private:
  Word weight(std::size_t k) const { return k < count_ ? weights_[k] : 0; }

  std::size_t next_light(std::size_t k) const {
    while (k < columns_ && weight(k) > capacity_) ++k;
    return k;
  }

  std::size_t next_heavy(std::size_t k) const {
    while (k < columns_ && weight(k) <= capacity_) ++k;
    return k;
  }

  // A full column takes itself as its alias and a threshold of 0: the threshold `capacity` would
  // need a bit more than there is.
  void set(std::size_t column, Word threshold, std::size_t alias) {
    out_[column] = threshold < capacity_ ? threshold * columns_ | alias : column;
  }

  const Word* weights_;
  std::size_t count_;
  std::size_t columns_;
  Word capacity_;
  Word* out_;
};

}  // namespace

void lattice_columns(const std::uint64_t* weights, std::size_t count, std::size_t columns,
                     std::uint64_t capacity, std::uint64_t* entries) {
  Columns(weights, count, columns, capacity, entries).build();
}

}  // namespace psinoise::PSINOISE_LEVEL
