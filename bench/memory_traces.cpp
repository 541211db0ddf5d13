#include "memory_traces.hpp"

#include <algorithm>
#include <random>
#include <utility>

namespace xpu::memory {
namespace {

constexpr std::size_t kKiB = std::size_t{1} << 10, kMiB = std::size_t{1} << 20;
constexpr int kCompute = 0, kGather = 1, kScatter = 2;

using Block = std::uint32_t;
using Blocks = std::vector<Block>;

class Script {
 public:
  explicit Script(std::uint64_t seed) : random_(seed) {}

  Block allocate(std::size_t bytes, int stream = kCompute) {
    note(TraceOperation::Kind::allocate, stream, count_, bytes);
    return count_++;
  }
  void free(Block block) { note(TraceOperation::Kind::free, kCompute, block, 0); }
  /// The last one first.
  void free_all(Blocks& blocks) {
    for (; !blocks.empty(); blocks.pop_back()) free(blocks.back());
  }
  void use(Block block, int stream) { note(TraceOperation::Kind::use, stream, block, 0); }
  void finish(int stream) { note(TraceOperation::Kind::finish, stream, 0, 0); }
  void temporary(std::size_t bytes) { free(allocate(bytes)); }

  /// Both included. Not a distribution of the standard library: they differ from one to the next.
  std::size_t between(std::size_t least, std::size_t most) { return least + random_() % (most - least + 1); }
  MemoryTrace take() { return std::move(trace_); }

 private:
  void note(TraceOperation::Kind kind, int stream, Block block, std::size_t bytes) {
    trace_.push_back({kind, static_cast<std::uint8_t>(stream), block, bytes});
  }
  std::mt19937_64 random_;
  MemoryTrace trace_;
  Block count_ = 0;
};

/// A stack of equal layers whose tensors are multiples of tokens x width, in 2 bytes.
class Transformer {
 public:
  struct Shape {
    std::size_t layers, width, vocabulary;
    std::size_t inner() const { return 4 * width; }
  };

  Transformer(Script& script, const Shape& shape) : script_(script), shape_(shape) {}

  /// Bytes of the weights of a layer, in 2 bytes an element.
  std::vector<std::size_t> weights() const {
    const std::size_t width = shape_.width;
    return {2 * width, 6 * width * width, 6 * width, 2 * width * width, 2 * width, 8 * width * width, 8 * width, 8 * width * width};
  }
  void allocate_weights() {
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      for (const std::size_t bytes : weights()) weights_.push_back(script_.allocate(bytes));
    }
    weights_.push_back(script_.allocate(2 * shape_.width * shape_.vocabulary));
  }

  /// Activations of a layer go to `saved`, its output last; what only the layer needs goes at once.
  void forward(std::size_t tokens, Blocks& saved) {
    const std::size_t unit = 2 * tokens * shape_.width;
    const auto save = [&](std::size_t bytes) { saved.push_back(script_.allocate(bytes)); };
    save(unit);
    save(4 * tokens);
    save(3 * unit);
    Blocks heads;
    for (int part = 0; part < 3; ++part) heads.push_back(script_.allocate(unit));
    save(unit);
    save(64 * tokens);
    script_.free_all(heads);
    const Block projected = script_.allocate(unit);
    save(unit / 2);
    save(unit);
    script_.free(projected);
    save(4 * tokens);
    save(2 * tokens * shape_.inner());
    save(2 * tokens * shape_.inner());
    const Block contracted = script_.allocate(unit);
    save(unit);
    script_.free(contracted);
  }
  /// Takes the gradient of a layer's output and returns that of its input; those of the weights go to `gradients`.
  Block backward(std::size_t tokens, Blocks& saved, Block gradient, Blocks& gradients) {
    const std::size_t unit = 2 * tokens * shape_.width;
    const std::vector<std::size_t> sizes = weights();
    Block flowing = gradient;
    for (std::size_t index = sizes.size(); index-- > 0;) {
      const Block next = script_.allocate(index >= 5 ? 2 * tokens * shape_.inner() : unit);
      gradients.push_back(script_.allocate(sizes[index]));
      script_.free(flowing);
      flowing = next;
      if (saved.size() > index) {
        script_.free(saved.back());
        saved.pop_back();
      }
    }
    script_.free_all(saved);
    return flowing;
  }
  /// The first gradient; nothing of it stays when it is not wanted.
  Block loss(std::size_t tokens) {
    const std::size_t logits_bytes = 2 * tokens * shape_.vocabulary;
    const Block logits = script_.allocate(logits_bytes), exact = script_.allocate(2 * logits_bytes);
    script_.temporary(2 * logits_bytes);
    script_.temporary(4);
    const Block gradient = script_.allocate(2 * tokens * shape_.width);
    script_.free(exact);
    script_.free(logits);
    return gradient;
  }

  struct Step {
    std::size_t tokens = 0;
    bool recomputes = false;
  };
  /// Gradients stay in `gradients` for the optimizer; when there are some already, the new ones are added to them.
  void train(const Step& step, Blocks& gradients) {
    const bool accumulates = !gradients.empty();
    std::vector<Blocks> saved(shape_.layers);
    for (Blocks& layer : saved) {
      forward(step.tokens, layer);
      if (step.recomputes) keep_output(layer);
    }
    Block gradient = loss(step.tokens);
    for (std::size_t layer = shape_.layers; layer-- > 0;) {
      if (step.recomputes) forward(step.tokens, saved[layer]);
      Blocks added;
      gradient = backward(step.tokens, saved[layer], gradient, added);
      if (accumulates) {
        script_.free_all(added);
      } else {
        gradients.insert(gradients.end(), added.begin(), added.end());
      }
    }
    script_.free(gradient);
  }
  void evaluate(std::size_t tokens) {
    Blocks last;
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      Blocks saved;
      forward(tokens, saved);
      script_.free_all(last);
      keep_output(saved);
      last = saved;
    }
    script_.free(loss(tokens / 8));
    script_.free_all(last);
  }
  /// Two moments and a copy for each weight, in 4 bytes, which are made in the first step; then a temporary for each of a group of them.
  void optimize(Blocks& gradients) {
    std::vector<std::size_t> sizes;
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
      for (const std::size_t bytes : weights()) sizes.push_back(2 * bytes);
    }
    if (moments_.empty()) {
      for (const std::size_t bytes : sizes) {
        for (int copy = 0; copy < 3; ++copy) moments_.push_back(script_.allocate(bytes));
      }
    }
    Blocks temporaries;
    for (std::size_t index = 0; index < sizes.size(); ++index) {
      temporaries.push_back(script_.allocate(sizes[index]));
      if (index % 16 == 15) script_.free_all(temporaries);
    }
    script_.free_all(temporaries);
    script_.free_all(gradients);
    script_.finish(kCompute);
  }

 private:
  void keep_output(Blocks& saved) {
    const Block output = saved.back();
    saved.pop_back();
    script_.free_all(saved);
    saved.push_back(output);
  }

  Script& script_;
  const Shape shape_;
  Blocks weights_, moments_;
};

constexpr Transformer::Shape kMiddle{16, 1'792, 32'000};

MemoryTrace train_steps(std::uint64_t seed, bool changes, bool recomputes, bool accumulates) {
  Script script(seed);
  Transformer model(script, kMiddle);
  model.allocate_weights();
  for (int step = 0; step < 10; ++step) {
    Blocks gradients;
    const std::size_t parts = accumulates ? script.between(1, 3) : 1;
    for (std::size_t part = 0; part < parts; ++part) {
      model.train({changes ? 8 * script.between(32, 768) : std::size_t{8} * 768, recomputes}, gradients);
    }
    model.optimize(gradients);
    if (accumulates && step % 4 == 3) model.evaluate(8 * script.between(256, 1'536));
  }
  return script.take();
}

MemoryTrace steady_training(std::uint64_t seed) { return train_steps(seed, false, false, false); }
MemoryTrace changing_lengths(std::uint64_t seed) { return train_steps(seed, true, false, false); }
MemoryTrace recomputing(std::uint64_t seed) { return train_steps(seed, true, true, false); }
MemoryTrace accumulating(std::uint64_t seed) { return train_steps(seed, true, false, true); }

/// A layer's weights are whole only while the layer is at work. They are gathered on one stream, used on another, and the gradients leave
/// on a third; the host runs ahead by two layers.
MemoryTrace sharded(std::uint64_t seed) {
  constexpr std::size_t kLayers = 24, kShards = 8;
  constexpr std::size_t kLayerBytes = 2 * 12 * std::size_t{3'072} * 3'072;
  Script script(seed);
  Transformer model(script, {kLayers, 3'072, 32'000});
  Blocks shards;
  for (std::size_t layer = 0; layer < 4 * kLayers; ++layer) shards.push_back(script.allocate(2 * kLayerBytes / kShards));
  const auto gather = [&] {
    const Block shard = script.allocate(kLayerBytes / kShards, kGather), whole = script.allocate(kLayerBytes, kGather);
    script.use(whole, kCompute);
    script.free(shard);
    return whole;
  };
  const auto catch_up = [&](std::size_t layer) {
    if (layer % 2 == 0) return;
    for (const int stream : {kCompute, kGather, kScatter}) script.finish(stream);
  };
  for (int step = 0; step < 6; ++step) {
    const std::size_t tokens = 8 * script.between(64, 512);
    std::vector<Blocks> saved(kLayers);
    Block next = gather();
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const Block whole = next;
      if (layer + 1 < kLayers) next = gather();
      model.forward(tokens, saved[layer]);
      script.free(whole);
      catch_up(layer);
    }
    Block gradient = model.loss(tokens);
    next = gather();
    Blocks scattered;
    for (std::size_t layer = kLayers; layer-- > 0;) {
      const Block whole = next;
      if (layer > 0) next = gather();
      Blocks gradients;
      gradient = model.backward(tokens, saved[layer], gradient, gradients);
      const Block flat = script.allocate(kLayerBytes);
      script.free_all(gradients);
      scattered.push_back(script.allocate(2 * kLayerBytes / kShards, kScatter));
      script.use(flat, kScatter);
      script.free(flat);
      script.free(whole);
      catch_up(layer);
    }
    script.free(gradient);
    script.free_all(scattered);
    for (const int stream : {kCompute, kGather, kScatter}) script.finish(stream);
  }
  return script.take();
}

/// Every layer sends its tokens to experts, to some of them many and to some hardly any.
MemoryTrace experts(std::uint64_t seed) {
  constexpr std::size_t kLayers = 12, kExperts = 24, kWidth = 2'048, kInner = 1'536, kTokens = 16'384;
  constexpr std::size_t kExpertBytes = 2 * 3 * kWidth * kInner;
  Script script(seed);
  Blocks weights;
  for (std::size_t index = 0; index < kLayers * kExperts; ++index) {
    for (const std::size_t bytes : {kExpertBytes, 4 * kExpertBytes}) weights.push_back(script.allocate(bytes));  // and its moments
  }
  for (int step = 0; step < 8; ++step) {
    struct Routed {
      std::size_t tokens;
      Blocks saved;
    };
    std::vector<Routed> routed;
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      std::size_t left = kTokens;
      for (std::size_t expert = 0; expert < kExperts; ++expert) {
        const std::size_t tokens = expert + 1 == kExperts ? left : script.between(0, std::min(left, 3 * kTokens / kExperts));
        left -= tokens;
        Routed& one = routed.emplace_back(Routed{tokens, {}});
        if (tokens == 0) continue;
        for (const std::size_t width : {kWidth, kInner, kInner}) one.saved.push_back(script.allocate(2 * tokens * width));
        script.temporary(2 * tokens * kInner);
        one.saved.push_back(script.allocate(2 * tokens * kWidth));
      }
    }
    Blocks gradients;
    for (; !routed.empty(); routed.pop_back()) {
      if (const std::size_t tokens = routed.back().tokens; tokens != 0) {
        Blocks flowing;
        for (const std::size_t width : {kWidth, kInner, kInner}) flowing.push_back(script.allocate(2 * tokens * width));
        gradients.push_back(script.allocate(kExpertBytes));
        script.free_all(flowing);
      }
      script.free_all(routed.back().saved);
    }
    script.free_all(gradients);
    script.finish(kCompute);
  }
  return script.take();
}

/// Feature maps that halve from stage to stage, of images of another size each step, with workspaces as a library for convolutions wants
/// them.
MemoryTrace images(std::uint64_t seed) {
  Script script(seed);
  Blocks weights;
  for (int index = 0; index < 96; ++index) weights.push_back(script.allocate(script.between(1, 9) * script.between(64, 1'024) * 2 * kKiB));
  for (int step = 0; step < 24; ++step) {
    const std::size_t height = 32 * script.between(14, 26), width = 32 * script.between(18, 42);
    Blocks saved;
    for (std::size_t stage = 1; stage <= 4; ++stage) {
      const std::size_t map_bytes = 8 * 4 * 64 * (height >> stage) * (width >> stage) * stage;
      for (std::size_t block = 0; block < 3 + stage; ++block) {
        for (const std::size_t divisor : {4u, 4u, 1u}) {
          const Block workspace = script.allocate(script.between(1, 96) * kMiB);
          saved.push_back(script.allocate(map_bytes / divisor));
          script.free(workspace);
          saved.push_back(script.allocate(256 * stage));
        }
      }
    }
    Blocks regions;
    for (std::size_t count = script.between(4, 16); count > 0; --count)
      regions.push_back(script.allocate(script.between(50, 2'000) * 24 * kKiB));
    script.free_all(regions);
    for (; !saved.empty(); saved.pop_back()) {
      script.temporary(script.between(1, 48) * kMiB);
      script.free(saved.back());
    }
    script.finish(kCompute);
  }
  return script.take();
}

/// Each sequence has a cache in every layer, which is replaced by one that is a token longer; sequences come and go.
MemoryTrace generation(std::uint64_t seed) {
  constexpr std::size_t kLayers = 24, kWidth = 3'584, kSequences = 8;
  constexpr std::size_t kTokenBytes = 2 * 2 * kWidth;
  Script script(seed);
  Blocks weights;
  for (std::size_t layer = 0; layer < kLayers; ++layer) weights.push_back(script.allocate(2 * 12 * kWidth * kWidth));
  struct Sequence {
    std::size_t batch = 0, length = 0, left = 0;
    Blocks caches;
  };
  std::vector<Sequence> sequences(kSequences);
  for (int step = 0; step < 96; ++step) {
    for (Sequence& sequence : sequences) {
      if (sequence.left == 0) {
        script.free_all(sequence.caches);
        sequence = {script.between(1, 4), script.between(16, 2'048), script.between(6, 48), {}};
        for (std::size_t layer = 0; layer < kLayers; ++layer) {
          const std::size_t tokens = sequence.batch * sequence.length;
          script.temporary(8 * kWidth * tokens);
          sequence.caches.push_back(script.allocate(kTokenBytes * tokens));
        }
        continue;
      }
      --sequence.left;
      ++sequence.length;
      for (Block& cache : sequence.caches) {
        const Block longer = script.allocate(kTokenBytes * sequence.batch * sequence.length);
        script.temporary(2 * 28 * sequence.batch * sequence.length);
        script.free(cache);
        cache = longer;
      }
      script.temporary(2 * 32'000 * sequence.batch);
    }
    script.finish(kCompute);
  }
  return script.take();
}

/// Blocks of three streams go in no order, and those that come instead have sizes of another kind: the memory that the old ones leave is
/// scattered among those that stay.
MemoryTrace changing_sizes(std::uint64_t seed) {
  constexpr std::size_t kLiveBytes = 12'288 * kMiB;
  Script script(seed);
  struct Live {
    Block block;
    std::size_t bytes;
  };
  std::vector<Live> live;
  std::size_t bytes = 0;
  for (std::size_t phase = 0; phase < 6; ++phase) {
    for (int step = 0; step < 3'000; ++step) {
      const std::size_t wanted = script.between(0, 3) == 0 ? script.between(1, 2'048) * 512
                                                           : (script.between(1, 64) << (phase % 3)) * script.between(1, 512) * kKiB;
      while (bytes + wanted > kLiveBytes) {
        std::swap(live[script.between(0, live.size() - 1)], live.back());
        script.free(live.back().block);
        bytes -= live.back().bytes;
        live.pop_back();
      }
      live.push_back({script.allocate(wanted, static_cast<int>(script.between(0, 2))), wanted});
      bytes += wanted;
      if (script.between(0, 9) == 0) script.use(live.back().block, static_cast<int>(script.between(0, 2)));
      if (script.between(0, 49) == 0) script.finish(static_cast<int>(script.between(0, 2)));
    }
  }
  return script.take();
}

constexpr double kMostOfLive = 1.01;
// No block of it is as large as another one, so that what one leaves of its last page suits nobody: half a page, 1 MiB, for each.
constexpr double kMostOfScatteredLive = 1.075;

constexpr Workload kWorkloads[] = {
    {"steady training", kMostOfLive, steady_training},
    {"changing lengths", kMostOfLive, changing_lengths},
    {"recomputing", kMostOfLive, recomputing},
    {"accumulating", kMostOfLive, accumulating},
    {"sharded", kMostOfLive, sharded},
    {"experts", kMostOfLive, experts},
    {"images", kMostOfLive, images},
    {"generation", kMostOfLive, generation},
    {"changing sizes", kMostOfScatteredLive, changing_sizes},
};

}  // namespace

std::span<const Workload> workloads() noexcept { return kWorkloads; }

}  // namespace xpu::memory
