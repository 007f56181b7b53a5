# Links by distributed ThinLTO in a Makefile. Include it where CC, CXX and the flags are set:
#
#   CXX = clang++
#   include PATH/distlto.mk
#   program: main.o other.o
#   	$(CXX_LINK) $(CXXFLAGS) $(LDFLAGS) $^ $(LDLIBS) -o $@
#
# `make THINLTO=0` compiles and links as without this file. Make's built-in rules
# for programs link with distlto as well.

THINLTO ?= 1
DISTLTO ?= distlto
# Options of distlto link.
DISTLTO_OPTIONS ?=

ifeq ($(THINLTO),1)
override CFLAGS += -flto=thin
override CXXFLAGS += -flto=thin
override LDFLAGS += -flto=thin -fuse-ld=lld
CC_LINK = $(DISTLTO) link $(DISTLTO_OPTIONS) -- $(CC)
CXX_LINK = $(DISTLTO) link $(DISTLTO_OPTIONS) -- $(CXX)
else
CC_LINK = $(CC)
CXX_LINK = $(CXX)
endif

LINK.o = $(CC_LINK) $(LDFLAGS) $(TARGET_ARCH)
LINK.c = $(CC_LINK) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)
LINK.cc = $(CXX_LINK) $(CXXFLAGS) $(CPPFLAGS) $(LDFLAGS) $(TARGET_ARCH)
