#!/bin/bash
# What this task finds on its desktop.
echo 'Nobody needs this.' >/root/Documents/old.txt
echo 'Somebody needs this.' >/root/Documents/keep.txt
