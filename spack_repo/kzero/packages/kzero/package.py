"""The Spack recipe of kzero: spack repo add spack_repo/kzero in a clone, then spack install kzero@main."""

import os
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Kzero(CMakePackage, CudaPackage):
    """kzero trains GPT-style language models from a batch job: ZeRO data parallelism over MPI ranks, Kokkos kernels,
    HDF5 checkpoints from which a stopped job goes on bit for bit."""

    homepage = "https://arxiv.org/abs/1910.02054"
    # The clone that this recipe lies in: a recipe and its sources are always of one version.
    git = str(Path(__file__).resolve().parents[4])

    test_requires_compiler = False

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("openmp", default=True, description="Several threads a rank")
    variant("nccl", default=True, when="+cuda", description="Messages between GPUs by NCCL")
    variant("cudnn", default=True, when="+cuda", description="Attention by cuDNN")
    variant("python", default=True, description="The modules that kzero-prepare and kzero-report need")
    variant("tests", default=False, description="Build the tests, and run them with spack install --test=root")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")

    # The same as cmake/Dependencies.cmake and spack.yaml; tests/install compares the three.
    depends_on("kokkos@4.7:4 +serial cxxstd=20")
    depends_on("mpi")
    depends_on("hdf5@1.10: +mpi")
    depends_on("onednn@2.6:", when="~cuda")
    depends_on("blas", when="~cuda")
    depends_on("tomlplusplus@3.3:")
    depends_on("cli11@2.1:")
    depends_on("fmt@9:")
    depends_on("nlohmann-json@3.11:")
    depends_on("xxhash")
    depends_on("icu4c@72:")
    with when("+openmp"):
        depends_on("kokkos +openmp")
        depends_on("onednn cpu_runtime=omp", when="~cuda")
        # Another OpenBLAS would start threads of its own beside those of the program.
        requires("^openblas threads=openmp", when="^[virtuals=blas] openblas")
    depends_on("kokkos ~openmp", when="~openmp")

    # Device builds: Kokkos for one architecture, as CMake's own CUDA language.
    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("kokkos +cuda +cuda_lambda +cmake_lang ~shared")  # a shared one has a CUDA runtime of its own
        conflicts("cuda_arch=none", msg="name the GPU's architecture, for instance cuda_arch=90")
        conflicts("~nccl", msg="device builds link NCCL")
        for arch in CudaPackage.cuda_arch_values:
            depends_on(f"kokkos cuda_arch={arch}", when=f"cuda_arch={arch}")
            depends_on(f"nccl cuda_arch={arch}", when=f"+nccl cuda_arch={arch}")
    depends_on("nccl@2.26:", when="+nccl")  # keeps the order of launches on several communicators
    depends_on("cudnn@9.11:", when="+cudnn")
    # The frontend is headers, for which Spack has no package.
    resource(
        name="cudnn-frontend",
        git="https://github.com/NVIDIA/cudnn-frontend.git",
        tag="v1.32.0",
        when="+cudnn",
        placement="cudnn-frontend",
    )
    depends_on("kokkos ~cuda", when="~cuda")

    with when("+python"):
        depends_on("python@3.11:", type="run")
        depends_on("py-jinja2@3.1.6:", type="run")  # the sandbox of earlier ones has holes
        depends_on("py-matplotlib", type="run")
        depends_on("py-tokenizers", type="run")
        depends_on("py-zstandard", type="run")

    with when("+tests"):
        depends_on("googletest@1.12:")
        depends_on("python@3.11:", type=("build", "test"))
        depends_on("py-h5py", type=("build", "test"))
        depends_on("py-matplotlib", type=("build", "test"))
        depends_on("py-numpy", type=("build", "test"))

    conflicts("%gcc@:11", msg="kzero is C++20")
    conflicts("%clang@:13", msg="kzero is C++20")
    conflicts("platform=windows")

    def cmake_args(self):
        arguments = []
        if self.spec.satisfies("+cuda"):
            arguments += [self.define("KZERO_DEVICE", "CUDA"), self.define("KZERO_CUDNN", self.spec.satisfies("+cudnn"))]
        else:
            arguments.append(self.define("BLAS_LIBRARIES", self.spec["blas"].libs.joined(";")))
        if self.spec.satisfies("+cudnn"):
            headers = os.path.join(self.stage.source_path, "cudnn-frontend", "include")
            arguments += [
                self.define("cuDNN_ROOT", self.spec["cudnn"].prefix),
                self.define("cuDNN_FRONTEND_INCLUDE_DIR", headers),
            ]
        return arguments + [
            self.define_from_variant("KZERO_TESTS", "tests"),
            self.define("KZERO_NATIVE", False),  # Spack's own target flags say for which processor
            self.define("HDF5_ROOT", self.spec["hdf5"].prefix),
        ]

    def check(self):
        """All tests but the job scripts', which start a Slurm, and those that need shells and groff."""
        with working_dir(self.build_directory):
            which("ctest", required=True)("--output-on-failure", "--exclude-regex", "^jobs_", "--label-exclude", "tools")

    def setup_run_environment(self, env):
        env.set("KZERO_SHARE", self.prefix.share.kzero)
        env.set("KZERO_JOBSCRIPTS", self.prefix.share.kzero.jobscripts)

    def test_version(self):
        """The program starts and says which version it is."""
        said = Executable(self.prefix.bin.kzero)("--version", output=str.split, error=str.split)
        assert "kzero" in said
        if not self.spec.satisfies("@main"):
            assert str(self.spec.version) in said

    def test_scripts(self):
        """The scripts in Python start, with the modules that they need."""
        if not self.spec.satisfies("+python"):
            raise SkipTest("this kzero was installed without the scripts' modules")
        for name in ("kzero-prepare", "kzero-report"):
            said = Executable(self.prefix.bin.join(name))("--help", output=str.split, error=str.split)
            assert "usage" in said

    def test_train(self):
        """The quickstart deck trains for three steps on one rank and leaves a valid checkpoint."""
        share = self.prefix.share.kzero
        kzero = Executable(self.prefix.bin.kzero)
        kzero(
            "train",
            os.path.join(share.input, "quickstart.toml"),
            f"data.files={share.docs}/*.md",
            "train.steps=3",
            "optimizer.warmup=1",
            "checkpoint.folder=saved",
            "run.metrics=metrics.jsonl",
        )
        said = kzero("inspect", "--verify", "saved", output=str.split, error=str.split)
        assert "every checksum agrees" in said
