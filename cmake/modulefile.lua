-- Modulefile for Lmod. It finds its prefix from its own path, PREFIX/share/modulefiles/kzero/VERSION.lua:
--   module use PREFIX/share/modulefiles && module load kzero
-- SITE: the modules that kzero was built with, for instance
-- depends_on("gcc", "mpich", "hdf5")
local prefix = myFileName():match("^(.*)/share/modulefiles/")

whatis("Name: kzero")
whatis("Version: " .. myModuleVersion())
whatis("Description: trains GPT-style language models with ZeRO from a batch job")

prepend_path("PATH", pathJoin(prefix, "bin"))
setenv("KZERO_SHARE", pathJoin(prefix, "share/kzero"))
setenv("KZERO_JOBSCRIPTS", pathJoin(prefix, "share/kzero/jobscripts"))
