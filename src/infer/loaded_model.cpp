#include "infer/loaded_model.hpp"

#include <algorithm>

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

/// All buffers of a rank. Constructed on measuring arenas, they give the plan.
template <class T>
struct ForwardBuffers {
  /// A batch in transit: host memory that a device copies from and to. On hosts it is the model's
  /// own memory.
  struct Staging {
    Token *inputs, *targets;
    float* losses;
  };

  Parameters<T> parameters;
  std::unique_ptr<model::Model<T>> model;
  Token *inputs, *targets;  // [rows]
  Staging host;

  ForwardBuffers(memory::Arenas& arenas, const ForwardPlan& plan, const ForwardShape& shape,
                 Machinery& machinery)
      : parameters(arenas, plan, machinery.grid.data().rank()),
        model(plan.definition->make<T>(arenas, resources(arenas, plan, shape, machinery))),
        inputs(arenas.take<Token>(memory::Category::io, shape.batch * shape.sequence)),
        targets(arenas.take<Token>(memory::Category::io, shape.batch * shape.sequence)),
        host(staging(arenas, shape.batch * shape.sequence)) {}

 private:
  Staging staging(memory::Arenas& arenas, Index rows) const {
    if (tensor::on_host) return {inputs, targets, nullptr};
    constexpr auto category = memory::Category::offloaded;
    return {arenas.take<Token>(category, rows), arenas.take<Token>(category, rows),
            arenas.take<float>(category, rows)};
  }

  static model::Resources resources(const memory::Arenas& arenas, const ForwardPlan& plan,
                                    const ForwardShape& shape, Machinery& machinery) {
    model::Resources means;
    means.batch = {shape.batch, machinery.threads, model::Passes::forward, machinery.attention};
    means.link.rank = plan.tensor;
    if (!arenas.measuring()) {
      means.gemm = machinery.gemm.get();
      means.link.comm = machinery.tensor.get();
    }
    return means;
  }
};

template <class T>
memory::Arenas measure(const ForwardPlan& plan, const ForwardShape& shape, Machinery& machinery) {
  memory::Arenas arenas;
  const ForwardBuffers<T> counted(arenas, plan, shape, machinery);
  return arenas;
}

template <class T>
class LoadedModel : public ForwardModel {
 public:
  LoadedModel(const Source& source, const ForwardShape& shape, Machinery& machinery,
              Index node_ranks)
      : shape_(shape),
        machinery_(machinery),
        plan_(config_for(source, shape), machinery.grid.data().size(), machinery.tensor_rank()),
        measured_(measure<T>(plan_, shape, machinery)),
        arenas_(allocated(node_ranks)),
        buffers_(arenas_, plan_, shape, machinery) {}

  void read(const Source& source) {
    buffers_.parameters.load(buffers_.model->exec(), source.values, machinery_);
  }

  const ForwardShape& shape() const override { return shape_; }
  const memory::Bytes& planned() const override { return measured_.bytes(); }
  Index parameters() const override { return param::elements_of(plan_.table); }

  void token_losses(std::span<const Token> inputs, std::span<const Token> targets,
                    std::span<float> losses) override {
    const runtime::ProfileRegion region([] { return "kzero::infer::token_losses"; });
    const tensor::Execution& exec = buffers_.model->exec();
    const bool has_batch = !inputs.empty();
    model::Batch batch;
    if (has_batch) {
      batch.inputs = upload(inputs, buffers_.host.inputs, buffers_.inputs);
      batch.targets = upload(targets, buffers_.host.targets, buffers_.targets);
    }
    const std::span<float> found =
        tensor::on_host ? losses : std::span(buffers_.host.losses, losses.size());
    const param::Trace& trace = plan_.schedule.trace();
    for (std::size_t i = 0; i < trace.size(); ++i) {
      buffers_.parameters.before(i, exec, *machinery_.data);
      const auto units = buffers_.parameters.units();
      if (has_batch && trace[i].pass == param::Pass::loss) {
        buffers_.model->token_losses(units, batch, found);
        if (!tensor::on_host) std::ranges::copy(found, losses.begin());
      } else if (has_batch) {
        buffers_.model->forward(trace[i].unit, units, batch);
      }
      buffers_.parameters.after(i);
    }
  }

 private:
  memory::Arenas allocated(Index node_ranks) {
    require_memory(measured_.bytes(), node_ranks,
                   "a smaller --batch or --sequence, --partition over more ranks, or a 16-bit "
                   "--precision");
    return {measured_, machinery_.ledger};
  }

  /// The previous batch has been read, because its losses were waited for.
  tensor::Vector<const Token> upload(std::span<const Token> from, Token* host, Token* device) {
    KZERO_EXPECT(std::ssize(from) == shape_.batch * shape_.sequence);
    std::ranges::copy(from, host);
    if (host != device)
      runtime::copy_to_device(buffers_.model->exec(), host, device, std::ssize(from));
    return {device, from.size()};
  }

  ForwardShape shape_;
  Machinery& machinery_;
  ForwardPlan plan_;
  memory::Arenas measured_, arenas_;
  ForwardBuffers<T> buffers_;
};

}  // namespace

std::unique_ptr<ForwardModel> load(const Source& source, const ForwardShape& shape,
                                   Machinery& machinery, Index node_ranks) {
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
