#%Module1.0
# Modulefile for Environment Modules; Lmod prefers the one in Lua. It finds its prefix from its own path,
# PREFIX/share/modulefiles/kzero/VERSION:
#   module use PREFIX/share/modulefiles && module load kzero
# SITE: the modules that kzero was built with, for instance
# module load gcc mpich hdf5
set version [file tail $ModulesCurrentModulefile]
set prefix [file dirname [file dirname [file dirname [file dirname $ModulesCurrentModulefile]]]]

module-whatis "Name: kzero"
module-whatis "Version: $version"
module-whatis "Description: trains GPT-style language models with ZeRO from a batch job"

prepend-path PATH $prefix/bin
setenv KZERO_SHARE $prefix/share/kzero
setenv KZERO_JOBSCRIPTS $prefix/share/kzero/jobscripts
