#include "infer/loaded_model.hpp"

#include <algorithm>
#include "infer/parameters.hpp"

#include "base/error.hpp"
#include "grid/agreement.hpp"
#include "runtime/pinned_copy.hpp"
#include "runtime/profile.hpp"

namespace kzero::infer {

namespace {

deck::Config config_for(const Source& source, const ForwardShape& shape) {
  deck::Config config = source.config;
  KZERO_REQUIRE(shape.sequence <= config.model.sequence, ExitCode::usage,
                "sequences of {} tokens were asked for, but the model has positions for {}",
                shape.sequence, config.model.sequence);
  config.model.sequence = shape.sequence;
  return config;
}

Index own_rows(const ForwardShape& shape, const model::SequenceRank& part) {
  return shape.batch * shape.sequence / part.size;
}

/// All buffers of a rank. Constructed on measuring arenas, they give the plan.
template <class T>
struct ForwardBuffers {
  /// A batch in transit: host memory that a device copies from and to. On hosts it is the model's
  /// own memory.
  struct Staging {
    Token *inputs, *targets;
    float* losses;
    Token* top_tokens = nullptr;  // null: none
    float* top_ln_p = nullptr;
  };

  Parameters<T> parameters;
  std::unique_ptr<model::Model<T>> model;
  Token *inputs, *targets;  // [rows]
  kernels::TopTokens top;   // [rows, top]
  Staging host;

  ForwardBuffers(memory::Arenas& arenas, const deck::Config& config,
                 const ForwardBlueprint& blueprint, const ForwardShape& shape,
                 const model::SequenceRank& part, engine::Machinery& machinery)
      : parameters(arenas, blueprint, machinery.grid.data().rank()),
        model(blueprint.definition->make<T>(
            arenas, resources(arenas, config, blueprint, shape, part, machinery))),
        inputs(arenas.take<Token>(memory::Category::io, own_rows(shape, part))),
        targets(arenas.take<Token>(memory::Category::io, own_rows(shape, part))),
        top(take_top(arenas, own_rows(shape, part), shape.top)),
        host(staging(arenas, own_rows(shape, part), shape.top)) {}

 private:
  static kernels::TopTokens take_top(memory::Arenas& arenas, Index rows, Index count) {
    constexpr auto category = memory::Category::io;
    return {tensor::Matrix<Token>(arenas.take<Token>(category, rows * count), rows, count),
            tensor::Matrix<float>(arenas.take<float>(category, rows * count), rows, count)};
  }

  Staging staging(memory::Arenas& arenas, Index rows, Index count) const {
    if (tensor::on_host) return {inputs, targets, nullptr, top.tokens.data(), top.ln_p.data()};
    constexpr auto category = memory::Category::offloaded;
    return {arenas.take<Token>(category, rows), arenas.take<Token>(category, rows),
            arenas.take<float>(category, rows), arenas.take<Token>(category, rows * count),
            arenas.take<float>(category, rows * count)};
  }

  static model::Resources resources(const memory::Arenas& arenas, const deck::Config& config,
                                    const ForwardBlueprint& blueprint, const ForwardShape& shape,
                                    const model::SequenceRank& part, engine::Machinery& machinery) {
    model::Resources means;
    means.batch = {.batch = shape.batch,
                   .threads = machinery.threads,
                   .passes = model::Passes::forward,
                   .attention = config.run.attention,
                   .tile_rows = config.train.tile_rows,
                   .top = shape.top};
    means.link.rank = blueprint.tensor;
    means.sequence.rank = part;
    if (!arenas.measuring()) {
      means.gemm = machinery.gemm.get();
      means.link.comm = machinery.tensor.get();
      means.sequence.comm = machinery.sequence.get();
    }
    return means;
  }
};

template <class T>
class LoadedModel : public ForwardModel {
 public:
  LoadedModel(const Source& source, const ForwardShape& shape, engine::Machinery& machinery,
              Index node_ranks)
      : shape_(shape),
        part_{machinery.grid.sequence().rank(), machinery.grid.sequence().size(),
              source.config.train.sequence_chunks},
        machinery_(machinery),
        blueprint_(config_for(source, shape), machinery.grid.data().size(),
                   engine::tensor_rank(machinery.grid)),
        measured_(memory::measured([&](memory::Arenas& arenas) {
          ForwardBuffers<T>(arenas, source.config, blueprint_, shape, part_, machinery);
        })),
        shared_(allocated(node_ranks)),
        arenas_(measured_, machinery.ledger, shared_.get()),
        buffers_(arenas_, source.config, blueprint_, shape, part_, machinery) {}

  void read(const Source& source) {
    buffers_.parameters.load(buffers_.model->exec(), source.values, machinery_);
  }

  const ForwardShape& shape() const override { return shape_; }
  const model::SequenceRank& part() const override { return part_; }
  const memory::Bytes& planned() const override { return measured_.bytes(); }
  Index parameters() const override { return param::elements_of(blueprint_.table); }

  void token_losses(std::span<const Token> inputs, std::span<const Token> targets,
                    std::span<float> losses) override {
    const runtime::ProfileRegion region([] { return "kzero::infer::token_losses"; });
    compute(inputs, targets, losses, false);
  }

  void top_losses(std::span<const Token> inputs, std::span<const Token> targets,
                  std::span<float> losses, std::span<Token> tokens,
                  std::span<float> ln_p) override {
    const runtime::ProfileRegion region([] { return "kzero::infer::top_losses"; });
    compute(inputs, targets, losses, true);
    const tensor::Execution& exec = buffers_.model->exec();
    const auto& host = buffers_.host;
    if (!tensor::on_host && !tokens.empty()) {
      runtime::copy_to_host(exec, buffers_.top.tokens.data(), host.top_tokens, std::ssize(tokens));
      runtime::copy_to_host(exec, buffers_.top.ln_p.data(), host.top_ln_p, std::ssize(ln_p));
    }
    exec.fence("kzero::infer::top_read");
    std::copy_n(host.top_tokens, tokens.size(), tokens.begin());
    std::copy_n(host.top_ln_p, ln_p.size(), ln_p.begin());
  }

 private:
  /// Runs all units. Copies the losses, and leaves top tokens in the buffers if they are wanted.
  void compute(std::span<const Token> inputs, std::span<const Token> targets,
               std::span<float> losses, bool finds_top) {
    const tensor::Execution& exec = buffers_.model->exec();
    const bool has_batch = !inputs.empty();
    model::Batch batch;
    if (has_batch) {
      batch.inputs = upload(inputs, buffers_.host.inputs, buffers_.inputs);
      batch.targets = upload(targets, buffers_.host.targets, buffers_.targets);
    }
    const std::span<float> found =
        tensor::on_host ? losses : std::span(buffers_.host.losses, losses.size());
    const auto operate = [&](const param::Operation& operation) {
      const auto units = buffers_.parameters.units();
      if (has_batch && operation.pass == param::Pass::loss) {
        if (finds_top) {
          buffers_.model->top_tokens(units, batch, found, buffers_.top);
        } else {
          buffers_.model->token_losses(units, batch, found);
        }
        if (!tensor::on_host) std::ranges::copy(found, losses.begin());
      } else if (has_batch) {
        buffers_.model->forward(operation.unit, units, batch);
      }
    };
    buffers_.parameters.run(exec, *machinery_.data, operate);
  }

  /// Allocates what the ranks of a node share, on all of them or on none.
  std::unique_ptr<memory::SharedMemory> allocated(Index node_ranks) const {
    grid::collectively(machinery_.grid.world(), [&] {
      engine::require_memory(
          measured_.bytes(), node_ranks,
          "a smaller --batch or --sequence, more --sequence-ranks, --partition over more ranks, or "
          "a 16-bit --precision");
    });
    return machinery_.share(measured_.shared_bytes(),
                            "without --partition each rank holds all parameters itself");
  }

  /// The previous batch has been read, because its losses were waited for.
  tensor::Vector<const Token> upload(std::span<const Token> from, Token* host, Token* device) {
    KZERO_EXPECT(std::ssize(from) == own_rows(shape_, part_));
    std::ranges::copy(from, host);
    if (host != device)
      runtime::copy_to_device(buffers_.model->exec(), host, device, std::ssize(from));
    return {device, from.size()};
  }

  ForwardShape shape_;
  model::SequenceRank part_;
  engine::Machinery& machinery_;
  ForwardBlueprint blueprint_;
  memory::Arenas measured_;
  std::unique_ptr<memory::SharedMemory> shared_;  // null unless ranks share memory
  memory::Arenas arenas_;
  ForwardBuffers<T> buffers_;
};

}  // namespace

std::unique_ptr<ForwardModel> load(const Source& source, const ForwardShape& shape,
                                   engine::Machinery& machinery, Index node_ranks) {
  return with_type(source.config.train.precision, [&](auto type) -> std::unique_ptr<ForwardModel> {
    std::unique_ptr<LoadedModel<decltype(type)>> loaded;
    grid::collectively(machinery.grid.world(), [&] {
      loaded = std::make_unique<LoadedModel<decltype(type)>>(source, shape, machinery, node_ranks);
    });
    loaded->read(source);
    return loaded;
  });
}

}  // namespace kzero::infer
